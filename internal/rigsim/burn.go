package rigsim

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// The kinds of faults that show only when cards are under load for minutes. The libraries plant them on the second card.
const (
	BurnHot    Kind = "burn-hot"
	BurnBits   Kind = "burn-bits"
	BurnWrong  Kind = "burn-wrong"
	BurnLost   Kind = "burn-lost"
	BurnSilent Kind = "burn-silent"
	DDPSlow    Kind = "ddp-slow"
	DDPHang    Kind = "ddp-hang"
)

// BurnFaults are found by a burn-in or a scaling test, and by nothing that check does.
func BurnFaults() []Fault {
	library := func(fault string) func(*machine) {
		return func(m *machine) { m.NCCL.Library = fault }
	}
	return []Fault{
		{Kind: BurnHot, Words: "the second card gets too little air: it throttles after a minute of load", Checks: []string{"burn-in.thermal"}, Burn: true, plant: func(m *machine) {
			m.hotCard, m.NCCL.Library = 1, "burn-slow"
		}},
		{Kind: BurnBits, Words: "the second card's memory flips bits under load", Checks: []string{"burn-in.memory"}, Burn: true, plant: library("burn-bits")},
		{Kind: BurnWrong, Words: "the second card computes wrongly now and then", Checks: []string{"burn-in.memory"}, Burn: true, plant: library("burn-wrong")},
		{Kind: BurnLost, Words: "the second card falls off the bus under load", Checks: []string{"burn-in.power"}, Burn: true, plant: library("burn-lost")},
		{Kind: BurnSilent, Words: "the rig switches itself off under load, and starts anew", Checks: []string{"burn-in.power"}, Burn: true, plant: func(m *machine) { m.dies = true }},
		{Kind: DDPSlow, Words: "gradients travel at a fifth of what the links carry", Checks: []string{"ddp.scaling"}, Burn: true, plant: func(m *machine) { m.ddp = "slow" }},
		{Kind: DDPHang, Words: "a training over several cards never ends its first step", Checks: []string{"ddp.scaling"}, Burn: true, plant: func(m *machine) { m.ddp = "hang" }},
	}
}

// Temperatures of cards under full load after some minutes, °C: air that is warmed by one card reaches the next.
const (
	peakFirst = 68
	peakStep  = 2
	peakHot   = 88
)

// burnCSV says how each card behaves under load: address, idle and peak temperature, watts that it wants, watts that it may, clock,
// generation of its link.
func burnCSV(m *machine) string {
	var b strings.Builder
	for i, g := range smiGPUs(m) {
		peak := peakFirst + peakStep*(i%4)
		if m.hotCard > 0 && i == m.hotCard {
			peak = peakHot
		}
		fmt.Fprintf(&b, "%s\t%d\t%d\t%.0f\t%.0f\t%d\t%d\n", g.BDF, g.Temp, peak, g.Model.DefaultW, g.LimitW, 2520, g.LoadGen)
	}
	return b.String()
}

// burningDir is where the libraries note which cards are under load.
const burningDir = "burning"

// deadFor is how long a rig that switched itself off stays away; diesAfter how long it bears the load.
const (
	deadFor   = 6 * time.Second
	diesAfter = 2 * time.Second
)

// fate is whether a rig that cannot bear load is off at the moment.
type fate struct {
	dies bool
	off  atomic.Bool
}

// follow cuts a connection when the rig dies under load. It comes back later, started anew.
func (s *server) follow(conn net.Conn, over <-chan struct{}) {
	if !s.fate.dies {
		return
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		burning, _ := filepath.Glob(filepath.Join(s.rig.Root, dataDir, burningDir, "*"))
		switch {
		case s.fate.off.Load():
			_ = conn.Close()
			return
		case len(burning) == 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > diesAfter && s.fate.off.CompareAndSwap(false, true):
			_ = conn.Close()
			time.AfterFunc(deadFor, func() {
				for _, f := range burning {
					_ = os.Remove(f)
				}
				_ = os.WriteFile(filepath.Join(s.rig.Root, rootDir, "proc/sys/kernel/random/boot_id"), []byte("5f1c2a77-0d3e-4b6a-9c41-1e2d3c4b5a69\n"), 0o644)
				s.fate.off.Store(false)
			})
			return
		}
	}
}
