package remediation

import (
	"bytes"
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"preflight/checks"
	"preflight/internal/lang"
)

func remedies(t *testing.T) *Catalog {
	t.Helper()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// codes are what the checks raise.
var codes = strings.Fields(`
gpu.count/missing-card gpu.count/driver-lost gpu.count/too-many gpu.model/mismatch gpu.model/mixed
driver.loaded/not-installed driver.loaded/not-loaded driver.loaded/nouveau driver.loaded/version-mismatch driver.loaded/vfio
driver.loaded/unbound driver.loaded/hung driver.loaded/open-module driver.loaded/secure-boot
firmware.above-4g/off firmware.above-4g/unassigned
firmware.resizable-bar/enable firmware.resizable-bar/vbios firmware.resizable-bar/partial firmware.resizable-bar/display-mode
pcie.width/slot-fault pcie.width/slot-limit pcie.width/off-bus pcie.speed/slot-gen pcie.speed/under-load
pcie.uplink/shared pcie.uplink/chipset pcie.uplink/external cpu.lanes/short cpu.cores/short ram.per-card/short ram.per-card/lost-dimm
storage.capacity/short power.psu/short power.psu/cap-not-permanent power.mains/short chassis.slot-spacing/tight chassis.slot-spacing/impossible
topology.p2p/required topology.p2p/unproven nccl.all-reduce/hang nccl.all-reduce/wrong-data nccl.all-reduce/error nccl.all-reduce/transport
nccl.all-reduce/slow nccl.all-reduce/ranks nccl.all-reduce/library site.rule
gpu.health/off-bus gpu.health/reset gpu.health/memory gpu.health/nvlink gpu.health/program gpu.health/xid
gpu.throttle/thermal gpu.throttle/power-brake gpu.power-limit/lowered gpu.genuine/modded gpu.genuine/flashed gpu.genuine/laptop
firmware.iommu/translated firmware.iommu/faults firmware.boot-mode/legacy pcie.errors/link pcie.errors/uncorrected pcie.acs/redirect
driver.version/mismatch driver.version/open-module driver.version/old driver.version/too-new driver.persistence/off
topology.numa/split topology.numa/uneven topology.numa/no-memory ram.channels/empty ram.channels/unequal runtime.torch/missing
runtime.torch/broken runtime.torch/cpu-build runtime.torch/driver-old runtime.torch/arch runtime.torch/no-cuda runtime.torch/fewer
runtime.torch/visible runtime.torch/nccl-override container.runtime/no-toolkit container.runtime/not-registered container.runtime/stale-cdi
container.runtime/no-cgroups container.shm/small container.shm/full host.memlock/low host.ports/busy host.ports/ephemeral
cluster.consistency/driver cluster.consistency/nccl cluster.consistency/kernel cluster.consistency/cmdline cluster.consistency/bios
cluster.consistency/vbios cluster.consistency/persistence cluster.consistency/power
link.bandwidth/slow link.bandwidth/crowded topology.p2p/corrupt topology.p2p/slow nccl.all-reduce/wedged
nccl.all-reduce/unreachable nccl.all-reduce/nccl-versions nccl.all-reduce/slow-network nccl.all-reduce/across-hang
burn-in.thermal/hot burn-in.thermal/power-brake burn-in.thermal/spread burn-in.power/host-lost burn-in.power/card-lost burn-in.power/low-load
burn-in.memory/wrong-bits burn-in.memory/ecc burn-in.memory/xid
ddp.scaling/communication ddp.scaling/hang ddp.scaling/error ddp.scaling/slow-card ddp.scaling/thermal ddp.scaling/contention ddp.scaling/input`)

func TestEveryCodeHasARemedy(t *testing.T) {
	c := remedies(t)
	for _, code := range codes {
		if _, ok := c.Remedy(code); !ok {
			t.Errorf("no remedy for %s", code)
		}
	}
	for _, code := range c.Codes() {
		if !slices.Contains(codes, code) {
			t.Errorf("%s: no check raises this", code)
		}
		check, _, _ := strings.Cut(code, "/")
		if !slices.Contains(checks.IDs(), check) && code != "site.rule" {
			t.Errorf("%s: there is no check %s", code, check)
		}
	}
}

// empty are phrases that send the reader away in place of a step.
var empty = regexp.MustCompile(`(?i)consult|manual\b|refer to|documentation|contact (your|the)|see the vendor|google|seek help|as appropriate|if necessary|etc\.`)

// problems says what is wrong with a remedy.
func problems(c *Catalog, r Remedy) []string {
	var out []string
	if r.Title.En == "" || len(r.Steps) == 0 {
		out = append(out, "no title or no steps")
	}
	if _, ok := rebootWords[r.Reboot]; !ok {
		out = append(out, "reboot must be no, yes or power off, not "+r.Reboot)
	}
	if !strings.HasPrefix(r.Verify, "preflight check ") && !strings.HasPrefix(r.Verify, "preflight probe ") {
		out = append(out, "verify must be a command of preflight that looks again")
	}
	always, all := 0, r.Title.En+" "+r.Verify
	for _, s := range r.Steps {
		all += " " + s.Text.En + " " + s.Command
		if len(s.Needs) == 0 {
			always++
		}
		for _, n := range s.Needs {
			if _, ok := r.Params[n]; !ok {
				out = append(out, "needs an undeclared value: "+n)
			}
		}
		ways := 0
		for _, given := range []bool{s.Command != "", s.Option != "", s.Hand} {
			if given {
				ways++
			}
		}
		switch {
		case ways != 1:
			out = append(out, "a step has exactly one of command, bios and hand: "+s.Text.En)
		case s.Hand && len(s.Text.En) < 40:
			out = append(out, "a hand action says what hands do: "+s.Text.En)
		case s.Option != "" && c.bios.menu(lang.En, s.Option, Board{}) == "":
			out = append(out, "unknown BIOS option "+s.Option)
		case s.Text.En == "":
			out = append(out, "a step without words: "+s.Command)
		}
	}
	if always == 0 {
		out = append(out, "every step depends on a value that may be missing")
	}
	if m := empty.FindString(all); m != "" {
		out = append(out, "sends the reader away: "+m)
	}
	for _, m := range placeholder.FindAllStringSubmatch(all, -1) {
		if _, ok := r.Params[m[1]]; !ok && m[1] != rigParam {
			out = append(out, "undeclared value {"+m[1]+"}")
		}
	}
	for p := range r.Params {
		if !strings.Contains(all, "{"+p+"}") {
			out = append(out, "declared and not used: "+p)
		}
	}
	return out
}

func TestRemediesAreUsable(t *testing.T) {
	c := remedies(t)
	for _, code := range c.Codes() {
		r, _ := c.Remedy(code)
		for _, p := range problems(c, r) {
			t.Errorf("%s: %s", code, p)
		}
	}
}

func TestBadRemediesAreRefused(t *testing.T) {
	c := remedies(t)
	good := Remedy{Title: Text{En: "x"}, Reboot: "no", Verify: "preflight check -i rigs.hcl", Steps: []RawStep{{Text: Text{En: "run"}, Command: "true"}}}
	if p := problems(c, good); len(p) > 0 {
		t.Fatalf("a good one is refused: %v", p)
	}
	for _, tc := range []struct {
		name, want string
		change     func(*Remedy)
	}{
		{"no steps", "no steps", func(r *Remedy) { r.Steps = nil }},
		{"no reboot", "reboot must be", func(r *Remedy) { r.Reboot = "" }},
		{"no verify", "verify must be", func(r *Remedy) { r.Verify = "look at it" }},
		{"words alone", "exactly one", func(r *Remedy) { r.Steps[0].Command = "" }},
		{"the manual", "sends the reader away", func(r *Remedy) { r.Steps[0].Text.En = "Consult your manual" }},
		{"vague hands", "hand action", func(r *Remedy) { r.Steps[0] = RawStep{Text: Text{En: "Fix it"}, Hand: true} }},
		{"undeclared value", "undeclared value {bdf}", func(r *Remedy) { r.Steps[0].Command = "lspci -s {bdf}" }},
		{"unknown option", "unknown BIOS option", func(r *Remedy) { r.Steps[0] = RawStep{Text: Text{En: "x"}, Option: "overclock"} }},
		{"nothing for certain", "may be missing", func(r *Remedy) { r.Params = map[string]string{"a": "x"}; r.Steps[0].Needs = []string{"a"} }},
	} {
		r := good
		r.Steps = slices.Clone(good.Steps)
		tc.change(&r)
		if !strings.Contains(strings.Join(problems(c, r), "\n"), tc.want) {
			t.Errorf("%s: want %q, got %v", tc.name, tc.want, problems(c, r))
		}
	}
}

func TestFor(t *testing.T) {
	c := remedies(t)
	f := checks.Finding{Remedy: "pcie.width/slot-fault", Args: map[string]string{"bdf": "0000:81:00.0", "width": "x8", "expected": "x16", "hop": "a → b", "rig": "node-a"}}
	fix, ok := c.For(f, Board{Vendor: "ASRockRack", Name: "ROMED8-2T"})
	if !ok {
		t.Fatal("not found")
	}
	if fix.Title != "Get 0000:81:00.0 from x8 to x16" || fix.Reboot != "yes, with the power off" || fix.Verify != "preflight check -i rigs.hcl --only pcie.width node-a" {
		t.Errorf("%+v", fix)
	}
	if fix.Steps[0].Command != "sudo lspci -vv -s 0000:81:00.0 | grep -E 'LnkCap:|LnkSta:'" || !strings.Contains(fix.Steps[0].Text, "(a → b)") {
		t.Errorf("%+v", fix.Steps[0])
	}
	if _, ok := c.For(checks.Finding{Remedy: "no/such"}, Board{}); ok {
		t.Error("an unknown code has no remedy")
	}

	f.Args = nil
	fix, _ = c.For(f, Board{})
	if fix.Title != "Get the card from the narrow link to full width" || !strings.Contains(fix.Steps[0].Command, "-s <BDF> ") || strings.Contains(fix.Verify, "{") {
		t.Errorf("missing values must read well: %+v", fix)
	}

	f.Args = map[string]string{"bdf": "$(reboot)", "width": "x8\x1b[31m"}
	fix, _ = c.For(f, Board{})
	if strings.Contains(fix.Steps[0].Command, "reboot") || strings.Contains(fix.Title, "\x1b") {
		t.Errorf("what a host says must not reach a shell or a terminal: %+v", fix)
	}
}

func TestStepsThatNeedAValue(t *testing.T) {
	c := remedies(t)
	with, _ := c.For(checks.Finding{Remedy: "power.psu/short", Args: map[string]string{"cap_watts": "341", "usable": "4000 W", "draw": "4200 W"}}, Board{})
	without, _ := c.For(checks.Finding{Remedy: "power.psu/short", Args: map[string]string{"cap_watts": ""}}, Board{})
	if len(with.Steps) != len(without.Steps)+2 || with.Steps[0].Command != "sudo nvidia-smi -pl 341" || !strings.Contains(with.Steps[1].Command, "nvidia-smi -pl 341'") {
		t.Errorf("with %+v\nwithout %+v", with.Steps, without.Steps)
	}
}

func TestNoPlaceholderIsLeft(t *testing.T) {
	c := remedies(t)
	for _, code := range c.Codes() {
		fix, _ := c.For(checks.Finding{Remedy: code}, Board{})
		text := fix.Title + fix.Verify
		for _, s := range fix.Steps {
			text += s.Text + s.Command + s.Menu
		}
		r, _ := c.Remedy(code)
		for p := range r.Params {
			if strings.Contains(text, "{"+p+"}") {
				t.Errorf("%s: {%s} is left", code, p)
			}
		}
	}
}

func TestCommandsAreShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	c := remedies(t)
	for _, code := range c.Codes() {
		r, _ := c.Remedy(code)
		args := map[string]string{}
		for p := range r.Params {
			args[p] = "x1"
		}
		fix, _ := c.For(checks.Finding{Remedy: code, Args: args}, Board{})
		for _, s := range fix.Steps {
			cmd := exec.Command(sh, "-n") // parses, runs nothing
			cmd.Stdin = strings.NewReader(s.Command + "\n")
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %s\n%v %s", code, s.Command, err, out)
			}
		}
	}
}

func TestDataIsFormatted(t *testing.T) {
	names, err := fs.Glob(data, "data/*.hcl")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, n := range names {
		src, err := fs.ReadFile(data, n)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(hclwrite.Format(src), src) {
			t.Errorf("%s is not formatted as hclfmt does", n)
		}
	}
}

func TestMenu(t *testing.T) {
	c := remedies(t)
	for _, tc := range []struct {
		name   string
		board  Board
		option string
		want   string
	}{
		{"AM5 desktop", Board{Vendor: "ASUSTeK COMPUTER INC.", Name: "ROG STRIX X670E-E GAMING WIFI"}, "above_4g_decoding", "Advanced ▸ PCI Subsystem Settings ▸ Above 4G Decoding = Enabled"},
		{"recalled row says so", Board{Vendor: "ASRockRack", Name: "ROMED8-2T"}, "resizable_bar", "Advanced ▸ PCI Subsystem Settings ▸ Re-Size BAR Support = Enabled (not checked on a board)"},
		{"the board beats the vendor", Board{Vendor: "Dell Inc.", Name: "Precision 5820"}, "above_4g_decoding", "System BIOS ▸ Integrated Devices ▸ Memory Mapped I/O above 4 GB = Enabled"},
		{"server and desktop of one vendor", Board{Vendor: "Supermicro", Name: "X12DPG-OA6"}, "acs", "Advanced ▸ Chipset Configuration ▸ North Bridge"},
		{"AMD and Intel boards alike: both", Board{Vendor: "ASUSTeK COMPUTER INC.", Name: "PRIME Z690-P"}, "iommu", ", or "},
		{"menu not known", Board{Vendor: "Inspur", Name: "NF5280M6"}, "mmio_high_size", "MMIO High Granularity Size = 1024G (its menu is not known)"},
		{"unknown board", Board{Vendor: "Nobody", Name: "X"}, "resizable_bar", "the PCI page ▸ Re-Size BAR Support = Enabled (other makers: Resizable BAR"},
		{"no board", Board{}, "csm", "the Boot page ▸ CSM Support"},
	} {
		if got := c.bios.menu(lang.En, tc.option, tc.board); !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	for _, r := range c.bios.rows {
		if _, ok := c.bios.options[r.option]; !ok && r.option != "sr_iov" && r.option != "power_loss_restore" {
			t.Errorf("option %q has no entry in options.hcl", r.option)
		}
		if r.source == "" || r.name == "" || r.value == "" || r.vendor == "" {
			t.Errorf("row %s %s: vendor, name, value and source are required", r.family, r.option)
		}
	}
}

func TestBrokenDataIsAnError(t *testing.T) {
	const head = "vendor_pattern,board_pattern,bios_family,option,menu_path,option_name,recommended_value,notes,confidence,source\n"
	for _, tc := range []struct{ name, hcl, csv, want string }{
		{"two remedies of one code", `remedy "a/b" {
  title = "x"
  reboot = "no"
  verify = "y"
}
remedy "a/b" {
  title = "x"
  reboot = "no"
  verify = "y"
}`, head, "given twice"},
		{"unknown attribute", `remedy "a/b" {
  title  = "x"
  titel  = "x"
  reboot = "no"
  verify = "y"
}`, head, "titel"},
		{"bad pattern", ``, head + "(,,,o,,n,v,,,s\n", "line 2"},
		{"short row", ``, head + "a,b\n", "bios_paths.csv"},
	} {
		files := fstest.MapFS{"data/x.hcl": {Data: []byte(tc.hcl)}, "data/bios_paths.csv": {Data: []byte(tc.csv)}}
		if _, err := load(files, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: want %q, got %v", tc.name, tc.want, err)
		}
	}
}

func TestLanguages(t *testing.T) {
	text := Text{En: "Slot", Zh: "插槽"}
	for l, want := range map[lang.Language]string{lang.En: "Slot", lang.Zh: "插槽", "": "Slot"} {
		if got := text.In(l); got != want {
			t.Errorf("%s: %s", l, got)
		}
	}
	if (Text{En: "Slot"}).In(lang.Zh) != "Slot" {
		t.Error("what is not translated comes in English")
	}
}

func TestLoadForHoldsWhatWasAsked(t *testing.T) {
	all := remedies(t)
	for _, code := range all.Codes() {
		some, err := LoadFor([]string{code})
		if err != nil {
			t.Fatal(err)
		}
		want, _ := all.For(checks.Finding{Remedy: code}, Board{})
		got, ok := some.For(checks.Finding{Remedy: code}, Board{})
		if !ok || !cmp.Equal(got, want) {
			t.Errorf("%s: %s", code, cmp.Diff(want, got))
		}
	}
	if none, err := LoadFor([]string{}); err != nil || len(none.Codes()) != 0 {
		t.Errorf("nothing was asked, and %d came (%v)", len(none.Codes()), err)
	}
}
