package rigsim

import (
	"fmt"
	"time"
)

// Spec describes a rig in a few words. Zero values take what a healthy rig of that many cards has.
type Spec struct {
	Name     string
	Cards    int    // 1 to the number of the board's slots; more fit behind switches
	GPU      string // slug: rtx-4090 (default), rtx-3090, rtx-6000-ada
	Board    string // key: wrx90, romed8-2t, as-4124gs, am5; default by number of cards
	RAMGiB   int
	DisksGB  []int  // NVMe, 10^9 bytes
	Switches int    // PCIe switches that the cards hang below; 0: directly on the processor
	Driver   string // version of the NVIDIA driver
	Watts    int    // of one declared supply
	PSUs     int    // declared supplies
	Spare    int    // redundant ones among them
	User     bool   // what the login may read is what a plain user may; sudo refuses
	ExtraPCI int    // further PCI functions (virtual functions of a network card)
	Faults   []Kind
	BootedAt time.Time // zero: six days before the files are written
}

// Healthy is a rig on which every check passes: a workstation for up to 2 cards, an open frame on a single-socket
// server board for up to 4, a two-socket server with redundant supplies beyond.
func Healthy(name string, cards int) Spec {
	s := Spec{Name: name, Cards: cards}
	s.fill()
	return s
}

// defaults by number of cards.
var defaults = []struct {
	upTo  int
	board string
	ram   int
	disks []int
	watts int
	count int
	spare int
}{
	{2, "wrx90", 256, []int{2000}, 2200, 1, 0},
	{4, "romed8-2t", 256, []int{2000, 2000}, 1600, 2, 0},
	{8, "as-4124gs", 512, []int{3840, 3840}, 2200, 4, 1},
}

func (s *Spec) fill() {
	for _, d := range defaults {
		if s.Cards > d.upTo {
			continue
		}
		s.Board = or(s.Board, d.board)
		s.RAMGiB = or(s.RAMGiB, d.ram)
		s.Watts, s.PSUs = or(s.Watts, d.watts), or(s.PSUs, d.count)
		s.Spare = or(s.Spare, d.spare)
		if s.DisksGB == nil {
			s.DisksGB = d.disks
		}
		break
	}
	s.Name = or(s.Name, "rig")
	s.GPU = or(s.GPU, "rtx-4090")
	s.Driver = or(s.Driver, "570.158.01")
}

func (s *Spec) check() error {
	b, ok := boards[s.Board]
	switch {
	case s.Cards < 1 || s.Cards > 8:
		return fmt.Errorf("rig %s: %d cards; 1 to 8 can be simulated", s.Name, s.Cards)
	case !ok:
		return fmt.Errorf("rig %s: unknown board %q", s.Name, s.Board)
	case gpuModels[s.GPU].Slug == "":
		return fmt.Errorf("rig %s: unknown GPU %q", s.Name, s.GPU)
	case s.Switches == 0 && s.Cards > len(b.Ports):
		return fmt.Errorf("rig %s: %d cards, but %s has %d slots", s.Name, s.Cards, b.Name, len(b.Ports))
	case s.Switches > len(b.Ports):
		return fmt.Errorf("rig %s: %d switches, but %s has %d slots", s.Name, s.Switches, b.Name, len(b.Ports))
	}
	for _, k := range s.Faults {
		if _, ok := faultByKind(k); !ok {
			return fmt.Errorf("rig %s: unknown fault %q", s.Name, k)
		}
	}
	return nil
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
