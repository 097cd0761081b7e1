//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"preflight/internal/probe/wire"
)

// burnFor is a short burn of cards that do not exist, with reports often.
func burnFor(seconds float64) wire.Request {
	return wire.Request{Command: wire.CommandBurn, Limit: seconds + 60, Burn: &wire.BurnRequest{Seconds: seconds, Kernel: 0.05, Report: 0.2}}
}

// lastBurn is what was told last of a card.
func lastBurn(lines []wire.Line, card int) (out wire.Burn) {
	for _, l := range lines {
		if l.Burn != nil && *l.Card == card {
			out = *l.Burn
		}
	}
	return out
}

// Sound cards: all begin together, every result and every word is as it should be, and the fake's own speeds come out.
func TestBurn(t *testing.T) {
	lines, exit := ask(t, burnFor(1.5), "FAKE_GPU_COUNT=3")
	if exit != 0 {
		t.Fatalf("exit %d: %+v", exit, pick(lines, func(l wire.Line) bool { return l.Error != nil }))
	}
	for card := range 3 {
		b := lastBurn(lines, card)
		if b.Kernel != "mma80" || b.Rounds < 5 || b.Passes < 5 || b.Different != 0 || b.Wrong != 0 {
			t.Errorf("card %d: %+v", card, b)
		}
		if want := int64(0.85 * 22000 * (1 << 20)); b.Bytes > want || b.Bytes < want-1<<20 {
			t.Errorf("card %d: %d bytes of memory, want about %d", card, b.Bytes, want)
		}
		if b.TFLOPS > 166 || b.TFLOPS < 160 || b.GBs > 901 || b.GBs < 890 {
			t.Errorf("card %d: %.0f TFLOPS, %.0f GB/s", card, b.TFLOPS, b.GBs)
		}
	}
	begins := pick(lines, func(l wire.Line) bool { return l.Phase == wire.PhaseBurn && l.State == wire.StateBegin })
	if len(begins) != 1 || begins[0].Card != nil || begins[0].Limit != 31.5 {
		t.Errorf("the load begins with %+v", begins)
	}
}

// What the cards compute or keep wrongly is told by card, with the place and the bits; it does not end the load.
func TestBurnFindsBadCards(t *testing.T) {
	lines, exit := ask(t, burnFor(1.5), "FAKE_GPU_FAULT=burn-bits,burn-wrong")
	good, bad := lastBurn(lines, 0), lastBurn(lines, 1)
	if exit != 0 || good.Wrong != 0 || good.Different != 0 {
		t.Errorf("exit %d, the sound card: %+v", exit, good)
	}
	if bad.Wrong == 0 || bad.First != 4242*4 || bad.Bits != 0x00010001 {
		t.Errorf("memory: %+v", bad)
	}
	if bad.Different == 0 || bad.Different >= bad.Rounds {
		t.Errorf("arithmetic: %+v", bad)
	}
}

// A card that is lost, or whose kernel never ends, ends the load with its number and what the others had done.
func TestBurnEndsWithItsCard(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a hang")
	}
	for fault, key := range map[string]string{"burn-lost": wire.KeyDriver, "burn-hang": wire.KeyHang} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			lines, exit := ask(t, burnFor(40), "FAKE_GPU_FAULT="+fault, "FAKE_GPU_AFTER=0.5")
			told := pick(lines, func(l wire.Line) bool { return l.Error != nil && l.Burn != nil })
			if exit != exits[wire.OutcomeError] || len(told) != 1 || *told[0].Card != 1 || told[0].Error.Key != key {
				t.Fatalf("exit %d, %+v", exit, told)
			}
			if b := lastBurn(lines, 0); b.Rounds == 0 || b.Wrong != 0 {
				t.Errorf("the other card: %+v", b)
			}
		})
	}
}

// Drivers refuse kernels in several ways: the best that they take is used, and what cannot be is told.
func TestBurnKernels(t *testing.T) {
	for fault, want := range map[string]struct{ kernel, key string }{
		"ptx-old":       {"mma75", ""},
		"ptx-target":    {"mma80", ""},
		"no-jit":        {"", wire.KeyNoJIT},
		"little-memory": {"", wire.KeyLittleMemory},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			lines, _ := ask(t, burnFor(0.3), "FAKE_GPU_FAULT="+fault)
			if b := lastBurn(lines, 0); b.Kernel != want.kernel {
				t.Errorf("kernel %q, want %q", b.Kernel, want.kernel)
			}
			key := ""
			for _, l := range pick(lines, func(l wire.Line) bool { return l.Error != nil }) {
				key = l.Error.Key
			}
			if key != want.key {
				t.Errorf("error %q, want %q", key, want.key)
			}
		})
	}
}

// Nobody who does not listen keeps cards under load: the end of the input, or silence where signs of life were agreed, stops it
// within two seconds.
func TestBurnStops(t *testing.T) {
	for name, silence := range map[string]float64{"input ends": 0, "silence": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			r := burnFor(60)
			r.Burn.Silence = silence
			h.send(r)
			h.until(func(l wire.Line) bool { return l.Burn != nil })
			began := time.Now()
			if silence == 0 {
				_ = h.in.Close()
			} else {
				for range 5 { // as long as it is heard, it goes on
					time.Sleep(300 * time.Millisecond)
					if _, err := h.in.Write([]byte("\n")); err != nil {
						t.Fatal(err)
					}
				}
				began = time.Now()
			}
			if code := h.wait(); code != exitCut {
				t.Errorf("exit %d", code)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %s to stop", took)
			}
		})
	}
}

// A burn that makes no sense is refused before a card is touched.
func TestBurnRefused(t *testing.T) {
	for _, b := range []*wire.BurnRequest{nil, {}, {Seconds: -1}, {Seconds: 1e6}, {Seconds: 1, Memory: 0.99}, {Seconds: 1, Kernel: 3}, {Seconds: 1, Silence: -1}} {
		if err := (wire.Request{Command: wire.CommandBurn, Burn: b}).Check(); err == nil {
			t.Errorf("%+v is accepted", b)
		}
	}
}

// The kernels are what ptxas takes, for every architecture that they claim, without spilling registers.
func TestKernelsAssemble(t *testing.T) {
	ptxas, err := exec.LookPath("ptxas")
	if at := os.Getenv("PREFLIGHT_PTXAS"); at != "" {
		ptxas, err = at, nil
	}
	if err != nil {
		t.Skip("no ptxas: set PREFLIGHT_PTXAS or install the CUDA toolkit")
	}
	for file, archs := range map[string]string{
		"memory": "sm_50 sm_61 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90", "fma": "sm_50 sm_61 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90",
		"mma75": "sm_75 sm_80 sm_86 sm_89 sm_90", "mma80": "sm_80 sm_86 sm_89 sm_90",
	} {
		for arch := range strings.FieldsSeq(archs) {
			cmd := exec.Command(ptxas, "-v", "-arch="+arch, "-o", filepath.Join(t.TempDir(), "out"), "kernels/"+file+".ptx")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s for %s: %v\n%s", file, arch, err, out)
			}
			for line := range strings.SplitSeq(string(out), "\n") {
				if strings.Contains(line, "spill stores") && !strings.Contains(line, " 0 bytes spill stores") {
					t.Errorf("%s for %s: %s", file, arch, line)
				}
			}
		}
	}
}
