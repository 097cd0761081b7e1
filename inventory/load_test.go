package inventory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// hostType is a small tree of facts, of the shape that the real one has.
var hostType = cty.Object(map[string]cty.Type{
	"kind":  cty.String,
	"bios":  cty.Object(map[string]cty.Type{"version": cty.String, "vendor": cty.String}),
	"cards": cty.List(cty.Object(map[string]cty.Type{"bdf": cty.String, "bar1_mib": cty.Number, "name": cty.String})),
})

func options() Options {
	return Options{
		HostType: hostType, GPUSlugs: []string{"rtx-3090", "rtx-4090", "h100-sxm"},
		CheckIDs: []string{"pcie.width", "pcie.speed", "power.psu"},
	}
}

// load reads a source that must be right.
func mustLoad(t *testing.T, src string, opts Options) *Inventory {
	t.Helper()
	inv, diags := LoadBytes("rigs.hcl", []byte(src), opts)
	if diags.HasErrors() {
		t.Fatalf("%s", render(t, inv, diags))
	}
	return inv
}

func render(t *testing.T, inv *Inventory, diags hcl.Diagnostics) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteDiagnostics(&b, inv.Files, diags, 0, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const whole8 = `
ssh {
  user      = "ops"
  jump_host = "bastion.lab"
}

profile "train-4090" {
  extends    = "default"
  psu_margin = 1.25
  allow_x8   = false

  check "bios-floor" {
    assert  = version_at_least(host.bios.version, "2.5")
    message = "BIOS older than the validated 2.5"
  }
}

rig "node-a" {
  address = "192.0.2.10"
  cards   = 8
  gpu     = "rtx-4090"
  profile = "train-4090"
  group   = "lab-1"
  labels  = { rack = "r7" }
  price_per_hour = 2.5

  ssh {
    port = 2222
  }
  psu {
    watts = 2000
    count = 3
    spare = 1
  }
  psu {
    watts = 1600
    cards = ["81:00.0"]
  }
  mains {
    volts    = 230
    amps     = 16
    circuits = 2
  }
  chassis {
    cooling = "air"
    mount   = "slot"
    slot "5" {
      card      = "0000:81:00.0"
      thickness = 3
    }
    slot "1" {
      card      = "00000000:41:00.0"
      width     = 16
      thickness = 3
    }
    slot "3" {}
  }
}

workload "sft-7b" {
  parameters = "7B"
  method     = "lora"
  sequence   = 4096
  batch      = 4
  strategy   = "ddp"
}
`

func TestLoad(t *testing.T) {
	inv := mustLoad(t, whole8, options())
	r := inv.Rigs[0]
	checks := []struct {
		what      string
		got, want any
	}{
		{"address", r.Address, "192.0.2.10"},
		{"cards", *r.Cards, 8},
		{"user comes from the top", r.SSH.User, "ops"},
		{"port from the rig", r.SSH.Port, 2222},
		{"jump host", r.SSH.JumpHost, "bastion.lab"},
		{"label", r.Labels["rack"], "r7"},
		{"price", *r.PricePerHour, 2.5},
		{"margin", *r.Profile.PSUMargin, 1.25},
		{"x8", *r.Profile.AllowX8, false},
		{"not declared stays open", r.Profile.Cores == nil, true},
		{"rule", r.Profile.Rules[0].Name, "bios-floor"},
		{"supplies", fmt.Sprint(len(r.PSUs), r.PSUs[0].Count, r.PSUs[0].Spare, r.PSUs[1].Count, r.PSUs[1].Spare), "2 3 1 1 0"},
		{"short address gets its domain", r.PSUs[1].Cards[0], "0000:81:00.0"},
		{"mains", *r.Mains, Mains{Volts: 230, Amps: 16, Circuits: 2, Range: r.Mains.Range}},
		{"slots are sorted", fmt.Sprint(r.Chassis.Slots[0].Position, r.Chassis.Slots[1].Position, r.Chassis.Slots[2].Position), "1 3 5"},
		{"driver's domain of eight digits", r.Chassis.Slots[0].Card, "0000:41:00.0"},
		{"where the watts are", Position(r.Ranges["psu[0].watts"]), "rigs.hcl:31:5"},
		{"where the slot is", Position(r.Ranges[`chassis.slot["5"]`]), "rigs.hcl:47:5"},
		{"workload", inv.Workloads[0].Parameters, 7e9},
		{"profiles", strings.Join(sortedKeys(inv.Profiles), " "), "default train-4090"},
	}
	for _, c := range checks {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
}

// rigWith wraps the body of a rig that is otherwise right.
func rigWith(body string) string { return "rig \"a\" {\n  address = \"h\"\n" + body + "\n}" }

func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		name, src, at, want string
	}{
		{"unknown attribute", rigWith(`  card = 8`), "3:3", `Did you mean "cards"?`},
		{"unknown block", rigWith(`  psuu {}`), "3:3", `Did you mean "psu"?`},
		{"unknown top-level block", `rigg "a" {}`, "1:1", `Did you mean "rig"?`},
		{"top-level attribute", `user = "ops"`, "1:1", "cannot stand outside"},
		{"block as attribute", rigWith(`  psu = { watts = 1 }`), "3:3", "without the equals sign"},
		{"attribute as block", rigWith(`  labels {}`), "3:3", "write labels = …"},
		{"no address", `rig "a" {}`, "1:1", `needs "address"`},
		{"no label", `rig { address = "h" }`, "1:1", "needs a label"},
		{"two labels", `rig "a" "b" { address = "h" }`, "1:9", "one label"},
		{"label where none belongs", rigWith(`  mains "x" { volts = 230 }`), "3:9", "has no label"},
		{"duplicate rig", rigWith("") + "\n" + rigWith(""), "5:1", "declared at rigs.hcl:1:1"},
		{"duplicate profile", "profile \"p\" {}\nprofile \"p\" {}", "2:1", "declared at rigs.hcl:1:1"},
		{"duplicate mains", rigWith("  mains {\n volts = 230\n amps = 16\n }\n  mains {\n volts = 230\n amps = 16\n }"), "7:3", "Only one"},
		{"bad rig name", `rig "../x" { address = "h" }`, "1:5", "is no name"},
		{"unknown GPU", rigWith(`  gpu = "rtx4090"`), "3:3", `Did you mean "rtx-4090"?`},
		{"marketing name", rigWith(`  gpu = "GeForce RTX 4090"`), "3:3", `Did you mean "rtx-4090"?`},
		{"watts of 0", rigWith("  psu {\n    watts = 0\n  }"), "4:13", "watts: 0 is out of range"},
		{"negative watts", rigWith("  psu {\n    watts = -5\n  }"), "4:13", "out of range"},
		{"no watts", rigWith("  psu {}"), "3:3", `needs "watts"`},
		{"spare of all", rigWith("  psu {\n    watts = 1\n    count = 2\n    spare = 2\n  }"), "6:5", "must be below count"},
		{"no cards", rigWith(`  cards = 0`), "3:11", "must be 1 to 16"},
		{"17 cards", rigWith(`  cards = 17`), "3:11", "must be 1 to 16"},
		{"half a card", rigWith(`  cards = 1.5`), "3:11", "whole number"},
		{"cards as text", rigWith(`  cards = "many"`), "3:11", "takes a number"},
		{"circuits 0", rigWith("  mains {\n    volts = 230\n    amps = 16\n    circuits = 0\n  }"), "6:16", "must be 1 to 64"},
		{"no volts", rigWith("  mains {\n    amps = 16\n  }"), "3:3", `needs "volts"`},
		{"cooling", rigWith("  chassis {\n    cooling = \"watr\"\n  }"), "4:15", `Did you mean "water"?`},
		{"mount", rigWith("  chassis {\n    mount = \"slots\"\n  }"), "4:13", `Did you mean "slot"?`},
		{"overlap", rigWith("  chassis {\n    slot \"1\" {\n      card = \"41:00.0\"\n      thickness = 2.5\n    }\n    slot \"3\" {\n      card = \"81:00.0\"\n    }\n  }"), "8:5", "takes slots 1 to 3"},
		{"card twice", rigWith("  chassis {\n    slot \"1\" {\n      card = \"41:00.0\"\n    }\n    slot \"3\" {\n      card = \"0000:41:00.0\"\n    }\n  }"), "8:7", "sits in slot 1"},
		{"slot twice", rigWith("  chassis {\n    slot \"1\" {}\n    slot \"1\" {}\n  }"), "5:5", "Slot 1 is declared"},
		{"slot label", rigWith("  chassis {\n    slot \"top\" {}\n  }"), "4:5", "whole number"},
		{"slot width", rigWith("  chassis {\n    slot \"1\" {\n      width = 12\n    }\n  }"), "5:15", "1, 2, 4, 8 or 16"},
		{"bus address", rigWith("  chassis {\n    slot \"1\" {\n      card = \"41:0.0\"\n    }\n  }"), "5:7", "lspci -D"},
		{"more cards in slots than declared", rigWith("  cards = 1\n  chassis {\n    slot \"1\" {\n      card = \"41:00.0\"\n    }\n    slot \"3\" {\n      card = \"81:00.0\"\n    }\n  }"), "4:3", "cards = 1"},
		{"card fed twice", rigWith("  psu {\n    watts = 1\n    cards = [\"41:00.0\"]\n  }\n  psu {\n    watts = 1\n    cards = [\"41:00.0\"]\n  }"), "9:5", "fed by the psu block at rigs.hcl:3:3"},
		{"unknown profile", rigWith(`  profile = "defualt"`), "3:3", `Did you mean "default"?`},
		{"unknown base", `profile "p" { extends = "defalt" }`, "1:15", `Did you mean "default"?`},
		{"circle of profiles", "profile \"b\" { extends = \"a\" }\nprofile \"a\" { extends = \"b\" }", "1:15", "a → b → a"},
		{"profile extends itself", `profile "p" { extends = "p" }`, "1:15", "p → p"},
		{"unknown check", `profile "p" { require = ["pcie.with"] }`, "1:15", `Did you mean "pcie.width"?`},
		{"note below margin", "profile \"p\" {\n  psu_margin = 1.4\n  psu_note = 1.3\n}", "3:3", "below psu_margin"},
		{"share above one", `profile "p" { mains_load = 80 }`, "1:28", "must be 0 to 1"},
		{"negative cores", `profile "p" { cores = -1 }`, "1:23", "out of range"},
		{"rule with a typo", "profile \"p\" {\n  check \"x\" {\n    assert = version_at_least(host.bios.verzion, \"2\")\n  }\n}", "3:40", `Did you mean "version"?`},
		{"typo within a for", "profile \"p\" {\n  check \"x\" {\n    assert = alltrue([for c in host.cards : c.bar_mib > 256])\n  }\n}", "3:46", `Did you mean "bar1_mib"?`},
		{"typo within a splat", "profile \"p\" {\n  check \"x\" {\n    assert = contains(host.cards[*].nam, \"x\")\n  }\n}", "3:36", `Did you mean "name"?`},
		{"typo at the root", "profile \"p\" {\n  check \"x\" {\n    assert = hots.kind == \"metal\"\n  }\n}", "3:14", `Did you mean "host"?`},
		{"unknown function", "profile \"p\" {\n  check \"x\" {\n    assert = version_atleast(host.bios.version, \"2\")\n  }\n}", "3:14", `Did you mean "version_at_least"?`},
		{"rule that is a number", "profile \"p\" {\n  check \"x\" {\n    assert = length(host.cards)\n  }\n}", "3:14", "must give true or false"},
		{"rule that is a text", "profile \"p\" {\n  check \"x\" {\n    assert = host.kind\n  }\n}", "3:14", "must give true or false"},
		{"rule without assert", "profile \"p\" {\n  check \"x\" {}\n}", "2:3", `needs "assert"`},
		{"workload method", "workload \"w\" {\n  parameters = \"7B\"\n  method = \"loar\"\n}", "3:12", `Did you mean "lora"?`},
		{"workload strategy", "workload \"w\" {\n  parameters = \"7B\"\n  method = \"lora\"\n  strategy = \"zero3\"\n}", "4:14", `Did you mean "zero-3"?`},
		{"workload size", "workload \"w\" {\n  parameters = \"seven\"\n  method = \"lora\"\n}", "2:16", "7B"},
		{"address with a user", `rig "a" { address = "root@h" }`, "1:21", "ssh { user"},
		{"address like an option", `rig "a" { address = "-oProxyCommand=x" }`, "1:21", "starts with '-'"},
		{"bad port", `rig "a" { address = "h:99999" }`, "1:21", "no valid port"},
		{"host keys", `ssh { host_keys = "accept_new" }`, "1:19", `Did you mean "accept-new"?`},
		{"two ssh blocks", "ssh {}\nssh {}", "2:1", "the first is at rigs.hcl:1:1"},
		{"typo in a local", "locals {\n  lab = \"x\"\n}\n" + `rig "a" { address = local.lba }`, "4:26", `Did you mean "lab"?`},
		{"locals in a circle", "locals {\n  a = local.b\n  b = local.a\n}", "2:3", "a → b → a"},
		{"local twice", "locals {\n  a = 1\n}\nlocals {\n  a = 2\n}", "5:3", "given at rigs.hcl:2:3"},
		{"variable without value", `variable "lab" {}`, "1:1", "--var lab="},
		{"variable of the wrong type", "variable \"n\" {\n  type = number\n  default = \"x\"\n}", "3:13", "does not fit"},
		{"for_each over a list", "rig \"a\" {\n  for_each = [\"x\"]\n  address = \"h\"\n}", "2:14", "toset("},
		{"for_each over a number", "rig \"a\" {\n  for_each = 3\n  address = \"h\"\n}", "2:14", "map or a set"},
		{"key that is no name", "rig \"a\" {\n  for_each = toset([\"x/y\"])\n  address = \"h\"\n}", "1:5", "is no name"},
		{"hostlist out of bounds", `rig "a" { address = hostlist("x[0-999999999]")[0] }`, "1:31", "100000"},
		{"catalogue row without a source", "catalog {\n  gpu \"x\" {\n    name = \"X\"\n    pci_device_id = \"10de:1234\"\n    memory_mib = 1\n    tdp_w = 1\n  }\n}", "2:3", `needs "source"`},
		{"syntax", `rig "a" {`, "1:9", "Unclosed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inv, diags := LoadBytes("rigs.hcl", []byte(tc.src), options())
			text := render(t, inv, diags)
			if !diags.HasErrors() || !strings.Contains(text, tc.want) {
				t.Fatalf("want %q in:\n%s", tc.want, text)
			}
			var places []string
			for _, d := range diags {
				places = append(places, fmt.Sprintf("%d:%d", d.Subject.Start.Line, d.Subject.Start.Column))
			}
			if len(diags) != 1 || places[0] != tc.at {
				t.Errorf("want one mistake at %s, got %v:\n%s", tc.at, places, text)
			}
		})
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.hcl", "rig \"a\" {\n  address = \"h\"\n  gpu = \"rtx-409\"\n  psu {\n    watts = 0\n  }\n}")
	write(t, dir, "b.hcl", "rig \"a\" {\n  address = \"h\"\n  colour = \"red\"\n}")
	write(t, dir, "notes.txt", "not an inventory")
	inv, diags := Load(dir, options())
	text := render(t, inv, diags)
	for _, want := range []string{"a.hcl:3:3, in rig", "a.hcl:5:13, in rig", "b.hcl:1:1", "b.hcl:3:3", `watts = 0`, "a.hcl:1:1"} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in:\n%s", want, text)
		}
	}
	if len(diags) != 4 {
		t.Errorf("want 4 mistakes, got %d", len(diags))
	}
}

func TestDirectoryIsOneInventory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd[name]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "20-rigs.hcl", `rig "a" { address = local.lab }`+"\n"+`rig "b" { address = "h" }`)
	write(t, dir, "10-base.hcl", "locals {\n  lab = \"lab.example\"\n}\nssh { user = \"ops\" }")
	inv, diags := Load(dir, options())
	if diags.HasErrors() {
		t.Fatal(render(t, inv, diags))
	}
	if len(inv.Rigs) != 2 || inv.Rigs[0].Address != "lab.example" || inv.Rigs[1].SSH.User != "ops" {
		t.Errorf("files do not see each other: %+v", inv.Rigs)
	}
	for _, bad := range []string{filepath.Join(dir, "absent.hcl"), t.TempDir()} {
		if inv, diags := Load(bad, options()); !diags.HasErrors() || inv == nil || !strings.Contains(diags[0].Detail, bad) {
			t.Errorf("%s: %v", bad, diags)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestALongLineIsClipped(t *testing.T) {
	src := []byte("rig \"a\" {\n  addres = \"" + strings.Repeat("x", 100_000) + "\"\n}\n")
	inv, diags := LoadBytes("rigs.hcl", src, Options{})
	var b bytes.Buffer
	if err := WriteDiagnostics(&b, inv.Files, diags, 0, false); err != nil || !diags.HasErrors() {
		t.Fatal(err, diags)
	}
	if b.Len() > 4000 || !strings.Contains(b.String(), "rigs.hcl:2:3") {
		t.Errorf("%d bytes: %.300s", b.Len(), b.String())
	}
}
