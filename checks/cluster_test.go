package checks

import (
	"fmt"
	"strings"
	"testing"

	"preflight/internal/facts"
	"preflight/inventory"
)

// fleetOf is members of one group that are all alike, changed by name.
func fleetOf(n int, change map[int]func(*ho)) []Member {
	var out []Member
	for i := range n {
		h := goodHost(2)
		h.OS.Kernel = of("6.8.0-60-generic")
		h.BIOS.Version, h.Board.Name = of("2.4"), of("H12DSG-O-CPU")
		for j := range h.Cards {
			h.Cards[j].VBIOS = of("95.02.3C.40.B8")
		}
		if f := change[i]; f != nil {
			f(h)
		}
		out = append(out, Member{Rig: &inventory.Rig{Name: fmt.Sprint("node-", i), Group: "lab"}, Host: h})
	}
	return out
}

// A line stays a line, whatever a hundred rigs say.
func TestFleetOfAHundredIsBrief(t *testing.T) {
	change := map[int]func(*ho){}
	for i := range 100 {
		change[i] = func(h *ho) {
			h.OS.Cmdline = of(fmt.Sprintf("ro iommu=pt pci=disable_acs_redir=0000:%02x:01.1;0000:%02x:01.2 hugepages=%d", i, i, i))
		}
	}
	for i, fs := range RunFleet(fleetOf(100, change)) {
		for _, f := range fs {
			if f.Check == "cluster.consistency" && (len(f.Summary) > 160 || len(f.Note) > 700) {
				t.Fatalf("rig %d: %d and %d bytes: %s (%s)", i, len(f.Summary), len(f.Note), f.Summary, f.Note)
			}
		}
	}
}

func TestFleet(t *testing.T) {
	bare := func(h *ho) {
		*h = facts.Host{Cards: h.Cards[:1]}
		h.Cards[0] = facts.Card{Device: facts.Device{BDF: first}}
	}
	old := func(h *ho) { h.Driver.Version = of("535.183.01") }
	for _, row := range []struct {
		name   string
		fleet  []Member
		want   []Verdict // of each rig; "" nothing to replace
		remedy string
		says   string // in a summary or note of some rig
	}{
		{"all alike", fleetOf(3, nil), []Verdict{Pass, Pass, Pass}, "", "2 other rigs of group lab"},
		{"one driver deviates", fleetOf(4, map[int]func(*ho){2: old}), []Verdict{Pass, Pass, Warn, Pass}, "cluster.consistency/driver", "550.90.07 on 3 of 4 rigs"},
		{"two rigs differ: nobody is right", fleetOf(2, map[int]func(*ho){1: old}), []Verdict{Warn, Warn}, "cluster.consistency/driver", "do not agree"},
		{"two against two", fleetOf(4, map[int]func(*ho){0: old, 1: old}), []Verdict{Warn, Warn, Warn, Warn}, "cluster.consistency/driver", "do not agree"},
		{"VBIOS of one card of one rig", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.Cards[1].VBIOS = of("95.02.18.80.01") }}), []Verdict{Warn, Pass, Pass}, "cluster.consistency/vbios", "95.02.3c.40.b8"},
		{"VBIOS is written in two ways", fleetOf(3, map[int]func(*ho){0: func(h *ho) {
			for i := range h.Cards {
				h.Cards[i].VBIOS = of("95.02.3c.40.b8")
			}
		}}), []Verdict{Pass, Pass, Pass}, "", ""},
		{"another board has another BIOS by right", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.Board.Name, h.BIOS.Version = of("ROMED8-2T"), of("P3.50") }}), []Verdict{Pass, Pass, Pass}, "", ""},
		{"root= differs by right", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.OS.Cmdline = of("root=UUID=a ro") }, 1: func(h *ho) { h.OS.Cmdline = of("root=UUID=b ro") }}), []Verdict{Pass, Pass, Pass}, "", "not compared: kernel options"},
		{"iommu=pt on two of three", fleetOf(3, map[int]func(*ho){
			0: func(h *ho) { h.OS.Cmdline = of("ro iommu=pt") }, 1: func(h *ho) { h.OS.Cmdline = of("ro iommu=pt quiet") }, 2: func(h *ho) { h.OS.Cmdline = of("ro") },
		}), []Verdict{Pass, Pass, Warn}, "cluster.consistency/cmdline", "iommu=pt on 2 of 3"},
		{"a rig that does not tell is left out", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.OS.Kernel = facts.Fact[string]{} }}), []Verdict{Pass, Pass, Pass}, "", "not compared: kernel"},
		{"one rig could not be read", append(fleetOf(2, nil), Member{Rig: &inventory.Rig{Name: "dead", Group: "lab"}}), []Verdict{Pass, Pass, ""}, "", "not read: dead"},
		{"only one could be read", append(fleetOf(1, nil), Member{Rig: &inventory.Rig{Name: "dead", Group: "lab"}}), []Verdict{Unknown, ""}, "", "not read: dead"},
		{"three drivers on three rigs", fleetOf(3, map[int]func(*ho){0: old, 1: func(h *ho) { h.Driver.Version = of("570.86.15") }}), []Verdict{Warn, Warn, Warn}, "cluster.consistency/driver", "535.183.01 = node-0; 550.90.07 = node-2; 570.86.15 = node-1"},
		{"a rig whose nvidia-smi failed is not called alike", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.Driver.Version = facts.Fact[string]{} }}), []Verdict{Unknown, Pass, Pass}, "", "its driver's version is not known"},
		{"two lists of cards and nothing else", fleetOf(2, map[int]func(*ho){0: bare, 1: bare}), []Verdict{Unknown, Unknown}, "", "its driver's version is not known"},
		{"VBIOS not read on one rig", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.Cards[0].VBIOS = facts.Fact[string]{} }}), []Verdict{Pass, Pass, Pass}, "", "not compared: VBIOS of GeForce RTX 4090"},
		{"ACS of a port that leads to no card", fleetOf(3, map[int]func(*ho){0: func(h *ho) {
			h.PCI = append(h.PCI, facts.Device{BDF: "0000:f0:01.1", Class: "060400", ACS: of(0x1d)})
		}}), []Verdict{Pass, Pass, Pass}, "", ""},
		{"ACS above a card", fleetOf(3, map[int]func(*ho){0: func(h *ho) { setDevice(h, "0000:00:01.1", func(d *facts.Device) { d.ACS = of(0x1d) }) }}), []Verdict{Warn, Pass, Pass}, "cluster.consistency/bios", "ACS redirection: on here"},
		{"a Thunderbolt port is translated, the cards are not", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.IOMMU.Types = map[string]int{"DMA-FQ": 1, "identity": 40} }}), []Verdict{Pass, Pass, Pass}, "", ""},
		{"the IOMMU's mode is not told on one rig", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.IOMMU.Types, h.IOMMU.Cards = nil, nil }}), []Verdict{Pass, Pass, Pass}, "", "IOMMU"},
		{"NPS4 on one rig", fleetOf(3, map[int]func(*ho){0: func(h *ho) { h.CPU.Nodes = of(8) }}), []Verdict{Warn, Pass, Pass}, "cluster.consistency/bios", "NUMA nodes with"},
		{"another card model is not compared", fleetOf(3, map[int]func(*ho){0: func(h *ho) {
			for i := range h.Cards {
				h.Cards[i].Name, h.Cards[i].VBIOS, h.Cards[i].Product = of("RTX A6000"), of("94.02.5C.00.02"), "2230"
			}
		}}), []Verdict{Pass, Pass, Pass}, "", ""},
		{"alone", fleetOf(1, nil), []Verdict{""}, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			said, remedy := "", ""
			for i, fs := range RunFleet(row.fleet) {
				got := Verdict("")
				if fs != nil {
					got, _ = verdictOf(fs, "cluster.consistency")
				}
				if got != row.want[i] {
					t.Errorf("rig %d: %s, want %s: %+v", i, got, row.want[i], fs)
				}
				for _, f := range fs {
					said += f.Summary + "\n" + f.Note + "\n"
					remedy = firstOf(f.Remedy, remedy)
					if f.Verdict == Unknown && f.Known == "" {
						t.Errorf("does not say what would make it known")
					}
				}
			}
			if !strings.Contains(said, row.says) || remedy != row.remedy {
				t.Errorf("remedy %q, want %q; said:\n%s", remedy, row.remedy, said)
			}
		})
	}
	if v, _ := verdictOf(judge(goodRig(2), goodHost(2)), "cluster.consistency"); v != Skip {
		t.Errorf("one rig alone: %s", v)
	}
}
