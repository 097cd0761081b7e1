package playbooks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

func compileJSON(c *compiler) []Resource {
	v := c.value("value")
	path := c.list("key")
	if c.err != nil {
		return nil
	}
	if len(path) == 0 {
		c.err = errNoPath
		return nil
	}
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		c.err = err
		return nil
	}
	value, err := decode(raw)
	if err != nil {
		c.err = err
		return nil
	}
	return []Resource{{File: &File{Path: c.path(), Edit: JSONKey(path, value), After: c.after()}}}
}

func compilePackage(c *compiler) []Resource {
	return []Resource{{Package: &Package{Apt: c.list("apt"), Dnf: c.list("dnf"), Absent: c.is("absent"), Hold: c.is("hold"), Version: c.text("version")}}}
}

// compileUnit makes a unit's file, where its content is given, and its state.
func compileUnit(c *compiler) []Resource {
	name := c.text("name")
	var out []Resource
	if content := c.text("content"); content != "" {
		out = append(out, Resource{File: &File{
			Path: "/etc/systemd/system/" + name, Edit: Whole(content), Mode: "0644",
			After: []After{{Shell: "systemctl daemon-reload", Words: "systemd reads its units again"}, {Shell: "[ ! -e \"$R/etc/systemd/system/" + doubled(name) + "\" ] || systemctl try-restart " + quote(name), Words: name + " is restarted if it runs"}},
		}})
	}
	return append(out, Resource{Unit: &Unit{Name: name, Enabled: c.flag("enabled"), Running: c.flag("running")}})
}

// parameter is what a kernel's command line may have.
var parameter = regexp.MustCompile(`^[A-Za-z0-9_.:,=@/+-]+$`)

// compileKernel sets parameters of the kernel's command line. On Debian and Ubuntu a file of its own is read after the
// defaults, so that the owner's line stays as it is; elsewhere grubby holds them.
func compileKernel(c *compiler) []Resource {
	args := c.list("args")
	for _, a := range args {
		if !parameter.MatchString(a) {
			c.err = fmt.Errorf("%s: %q is no parameter of the kernel", c.task.Range, a)
			return nil
		}
	}
	if c.scope.Debian {
		name := strings.NewReplacer("=", "-", ",", "-", ":", "-", "/", "-").Replace(strings.Join(args, "_"))
		content := fmt.Sprintf("# Written by preflight.\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX %s\"\n", strings.Join(args, " "))
		return []Resource{{Reboot: true, File: &File{
			Path: "/etc/default/grub.d/90-preflight-" + name + ".cfg", Edit: Whole(content), Mode: "0644",
			After: []After{{Shell: "update-grub", Words: "the boot menu is written anew (update-grub)"}},
		}}}
	}
	list := quote(strings.Join(args, " "))
	var checks []string
	for _, a := range args {
		checks = append(checks, "case \" $line \" in *"+quote(" "+a+" ")+"*) ;; *) exit 1 ;; esac")
	}
	return []Resource{{Reboot: true, Command: &Command{
		Words: "kernel command line: " + strings.Join(args, " ") + " (grubby)",
		Check: "line=$(grubby --info=DEFAULT | sed -n 's/^args=\"\\(.*\\)\"/\\1/p')\n" + strings.Join(checks, "\n"),
		Apply: "grubby --update-kernel=ALL --args=" + list,
		Undo:  "grubby --update-kernel=ALL --remove-args=" + list,
	}}}
}

func compileModprobe(c *compiler) []Resource {
	f := &File{Path: "/etc/modprobe.d/" + c.text("name") + ".conf", Edit: Whole(c.text("content")), Mode: "0644"}
	if c.is("initramfs") {
		f.After = []After{{Shell: "dracut -f", Words: "the initramfs is made anew (dracut)"}}
		if c.scope.Debian {
			f.After = []After{{Shell: "update-initramfs -u", Words: "the initramfs is made anew (update-initramfs)"}}
		}
	}
	return []Resource{{File: f, Reboot: true}}
}

func compileSysctl(c *compiler) []Resource {
	v := c.value("values")
	if c.err != nil {
		return nil
	}
	values := map[string]string{}
	if v.CanIterateElements() {
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			text, err := convert.Convert(e, cty.String)
			if err != nil || text.IsNull() {
				c.err = fmt.Errorf("%s: values must be text or numbers", c.task.Range)
				return nil
			}
			values[k.AsString()] = text.AsString()
		}
	}
	var b strings.Builder
	b.WriteString("# Written by preflight.\n")
	for _, k := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s = %s\n", k, values[k])
	}
	path := "/etc/sysctl.d/" + c.text("name") + ".conf"
	return []Resource{{File: &File{
		Path: path, Edit: Whole(b.String()), Mode: "0644",
		After: []After{{Shell: "[ ! -e \"$R" + doubled(path) + "\" ] || sysctl -q -p \"$R" + doubled(path) + "\"", Words: "the values are set (sysctl -p)"}},
	}}}
}
