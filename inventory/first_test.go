package inventory

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

var someHosts = []Found{
	{
		Name: "node-a", Address: "192.0.2.10", User: "ops", Model: "rtx-4090", Cards: 2, Board: "ASRockRack ROMED8-2T", BIOS: "P3.50",
		BDFs: []FoundCard{
			{BDF: "0000:41:00.0", ID: "0123456789ab", Name: "NVIDIA GeForce RTX 4090", Designation: "PCIE7", Width: 16},
			{BDF: "0000:81:00.0", ID: "0123456789ac", Name: "NVIDIA GeForce RTX 4090", Width: 8},
		},
		PSUs: []FoundPSU{{Watts: 2000, Name: "PWS-2K08A"}, {Watts: 2000}},
	},
	{Name: "node-a", Address: "node-b.lab:2222"},
	{Name: "../ürg\n", Address: "h", Board: "evil\n}\nrig \"x\" { # \x1b[31m", BIOS: "\u2028${var.x}", PSUs: []FoundPSU{{Watts: 1, Name: "a\nb"}}},
}

// exampleLine is a line that the comments ask the reader to uncomment.
var exampleLine = regexp.MustCompile(`(?m)^(\s*)#((?:\S|  ).*|)$`)

func TestWriteFirst(t *testing.T) {
	var b bytes.Buffer
	if err := WriteFirst(&b, someHosts); err != nil {
		t.Fatal(err)
	}
	inv := mustLoad(t, b.String(), options())
	var names []string
	for _, r := range inv.Rigs {
		names = append(names, r.Name)
	}
	if got := strings.Join(names, " "); got != "node-a node-a-2 rg" && got != "node-a node-a-2 ---rg" {
		t.Errorf("names: %s", got)
	}
	if strings.ContainsAny(b.String(), "\x1b\u2028") {
		t.Error("what a host says must not reach the terminal as it is")
	}
	for _, want := range []string{"power.psu", "power.mains", "chassis.slot-spacing", "ROMED8-2T", "PCIE7", "PWS-2K08A, 2000 W"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing %q in:\n%s", want, b.String())
		}
	}

	full := mustLoad(t, exampleLine.ReplaceAllString(b.String(), "$1$2"), options())
	r := full.Rigs[0]
	if len(r.PSUs) != 1 || r.PSUs[0].Watts != 2000 || r.PSUs[0].Count != 2 || r.Mains == nil || r.Chassis == nil || len(r.Chassis.Slots) != 2 {
		t.Fatalf("the examples do not become declarations: %+v", r)
	}
	if s := r.Chassis.Slots[1]; s.Card != "0000:81:00.0" || s.Width != 8 {
		t.Errorf("slot: %+v", s)
	}
}

func TestRefresh(t *testing.T) {
	src := `# head
rig "a" {
  address = "h" # 0000:41:00.0 stays here
  psu {
    watts = 1600
    cards = ["0000:41:00.0", "c1:00.0"]
  }
  chassis {
    slot "1" {
      card      = "0000:41:00.0"   # left
      thickness = 3
    }
    slot "5" { card = "81:00.0" }
    slot "9" { card = "0000:80:01.1/0000:c1:00.0" }
    slot "12" { card = "0123456789ab" }
  }
}
rig "b" {
  address = "h"
  chassis {
    slot "1" { card = "0000:41:00.0" }
  }
}
`
	got, err := Refresh([]byte(src), "a", map[string]string{"0000:41:00.0": "0000:81:00.0", "0000:81:00.0": "0000:41:00.0", "0000:c1:00.0": "0000:c2:00.0"})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		`["0000:41:00.0", "c1:00.0"]`, `["0000:81:00.0", "0000:c2:00.0"]`,
		`card      = "0000:41:00.0"   # left`, `card      = "0000:81:00.0"   # left`,
		`"81:00.0"`, `"0000:41:00.0"`,
		`"0000:80:01.1/0000:c1:00.0"`, `"0000:80:01.1/0000:c2:00.0"`,
	).Replace(src)
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, tc := range []struct{ name, src, rig, want string }{
		{"no such rig", src, "c", "no rig"},
		{"made by for_each", "rig \"a\" {\n for_each = toset([\"x\"])\n address = \"h\"\n}", "a", "for_each"},
		{"computed", "rig \"a\" {\n chassis {\n slot \"1\" { card = local.card }\n }\n}", "a", "computed"},
		{"broken", "rig {", "a", "cannot be parsed"},
	} {
		if _, err := Refresh([]byte(tc.src), tc.rig, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: want %q, got %v", tc.name, tc.want, err)
		}
	}
}
