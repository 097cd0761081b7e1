package facts

import (
	"regexp"
	"strconv"
	"strings"
)

var nvrmVersion = regexp.MustCompile(`(?m)^NVRM version:.*?\b(\d{3}\.\d+(?:\.\d+)?)\b`)

// readDriver reads what the kernel says of the driver, without nvidia-smi.
func readDriver(b *builder) {
	const version = "proc/driver/nvidia/version"
	d := &b.host.Driver
	if t, ok := b.text(version); ok {
		d.Loaded = Of(true, "file:"+version)
		d.Open = Of(strings.Contains(t, "Open Kernel Module"), "file:"+version)
		if m := nvrmVersion.FindStringSubmatch(t); m != nil {
			d.Version = Of(m[1], "file:"+version)
		}
	}
	if mods, ok := b.text("proc/modules"); ok {
		loaded := map[string]bool{}
		for _, line := range strings.Split(mods, "\n") {
			name, _, _ := strings.Cut(line, " ")
			loaded[name] = true
		}
		if !d.Loaded.Known() {
			d.Loaded = Of(loaded["nvidia"], "file:proc/modules")
		}
		d.Nouveau = Of(loaded["nouveau"] || loaded["nova_core"], "file:proc/modules")
	}
	if t, ok := b.text("proc/driver/nvidia/params"); ok {
		d.EnableReBAR = paramValue(t, "EnableResizableBar")
	}
	b.readProcGPUs()
	const pid = "run/nvidia-persistenced/nvidia-persistenced.pid"
	if _, ok := b.snap.Files[pid]; ok {
		d.Persistd = Of(true, "file:"+pid)
	} else if it, ok := b.items[pid]; ok && it.Status == StatusAbsent {
		d.Persistd = Of(false, "file:"+pid)
	}
	if t, ok := b.text("cmd/power-cap-units.txt"); ok {
		b.host.CapUnits = Of(strings.Fields(t), "cmd:grep power limit units")
	} else if it, seen := b.items["cmd/power-cap-units.txt"]; seen && it.Status != StatusDenied {
		b.host.CapUnits = Of([]string{}, "cmd:grep power limit units")
	}
	if !d.Loaded.Known() {
		b.gap(KindDriver, "%s", b.why("proc/modules", "no /proc/modules and no driver version in the input"))
	}
}

func paramValue(text, key string) Fact[int] {
	for _, line := range strings.Split(text, "\n") {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
				return Of(n, "file:proc/driver/nvidia/params#"+key)
			}
		}
	}
	return Fact[int]{}
}

// readProcGPUs counts the driver's own list of cards and notes the excluded ones.
func (b *builder) readProcGPUs() {
	n := 0
	for path, raw := range b.snap.Files {
		rest, ok := strings.CutPrefix(path, "proc/driver/nvidia/gpus/")
		bdf, isInfo := strings.CutSuffix(rest, "/information")
		if !ok || !isInfo {
			continue
		}
		n++
		c := b.card(strings.ToLower(bdf))
		if c == nil {
			continue
		}
		for _, line := range strings.Split(string(raw), "\n") {
			k, v, _ := strings.Cut(line, ":")
			v = strings.TrimSpace(v)
			switch strings.TrimSpace(k) {
			case "Model":
				c.Name = known(strings.TrimPrefix(v, "NVIDIA "), "file:"+path)
			case "Video BIOS":
				if !strings.Contains(v, "?") {
					c.VBIOS = known(v, "file:"+path)
				}
			case "GPU Excluded":
				c.Excluded = Of(v == "Yes", "file:"+path)
			}
		}
	}
	if b.host.Driver.Loaded.Value {
		b.host.Driver.Nodes = Of(n, "file:proc/driver/nvidia/gpus")
	}
}
