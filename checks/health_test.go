package checks

import (
	"strings"
	"testing"

	"preflight/internal/facts"
)

const (
	first = "0000:01:00.0"
	other = "0000:21:00.0"
)

func TestGPUHealth(t *testing.T) {
	recovery154 := "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
	noLog := func(_ *rg, h *ho) { h.Log = facts.KernelLog{}; h.Gaps[facts.KindLog] = "dmesg needs root" }
	runRows(t, "gpu.health", []row{
		{"healthy 4090", 2, nil, Pass, ""},
		{"GeForce prints N/A for ECC, rows and recovery", 2, everyCard(func(c *facts.Card) { c.Recovery = facts.Fact[string]{} }), Pass, ""},
		{"a program's page fault", 2, xid(first, 31, "NVRM: Xid (PCI:0000:01:00): 31, pid=1, name=python3, Ch 8"), Pass, ""},
		{"twelve program faults on one card alone", 2, inTurn(times(12, xid(first, 13, "x"))), Warn, "gpu.health/program"},
		{"twelve program faults, and one on another card", 2, inTurn(times(12, xid(first, 13, "x")), xid(other, 13, "x")), Pass, ""},
		{"display engine", 1, xid(first, 56, "NVRM: Xid (PCI:0000:01:00): 56, CMDre 00000000"), Warn, "gpu.health/xid"},
		{"a number that nobody knows", 2, xid(first, 911, "x"), Warn, "gpu.health/xid"},
		{"GSP timeout once", 2, xid(first, 119, "x"), Warn, "gpu.health/reset"},
		{"GSP timeout again", 2, times(2, xid(first, 119, "x")), Fail, "gpu.health/reset"},
		{"power controller halted, and the driver wants a reset", 2, inTurn(xid(first, 62, "x"), xid(first, 154, recovery154)), Fail, "gpu.health/reset"},
		{"double-bit error", 2, xid(first, 48, "x"), Fail, "gpu.health/memory"},
		{"NVLink error named by its echo", 2, inTurn(onlyLog, xid(first, 45, "NVRM: Xid (PCI:0000:01:00): 45, pid=1, name=python3, Ch 1 caused by previous Xid 149")), Fail, "gpu.health/nvlink"},
		{"off the bus without an Xid", 2, inTurn(onlyLog, logLine("off-bus", first, 0, "NVRM: GPU at PCI:0000:01:00 has fallen off the bus")), Fail, "gpu.health/off-bus"},
		{"off the bus, and the log does not say which", 2, logLine("off-bus", "", 0, "fallen off the bus"), Fail, "gpu.health/off-bus"},
		{"ERR!", 2, card(0, func(c *facts.Card) { c.Sick = of("ERR!") }), Fail, "gpu.health/off-bus"},
		{"reset required", 2, card(0, func(c *facts.Card) { c.Recovery = of("Reset") }), Fail, "gpu.health/reset"},
		{"no handle", 2, func(_ *rg, h *ho) {
			h.Cards, h.PCI, h.Log = nil, nil, facts.KernelLog{}
			h.Driver = facts.Driver{SMIError: of("Unable to determine the device handle for GPU0000:0B:00.0: Unknown Error")}
			h.Gaps[facts.KindSMI] = "failed"
		}, Fail, "gpu.health/off-bus"},
		{"row remap waits for a reset", 2, card(1, func(c *facts.Card) { c.RemapPending, c.RemapFailure, c.Remapped = of(true), of(false), of(int64(0)) }), Warn, "gpu.health/reset"},
		{"row remap failed", 2, card(1, func(c *facts.Card) { c.RemapFailure = of(true) }), Fail, "gpu.health/memory"},
		{"one row remapped for good", 2, card(1, func(c *facts.Card) { c.Remapped, c.RemapPending, c.RemapFailure = of(int64(1)), of(false), of(false) }), Warn, "gpu.health/memory"},
		{"uncorrected errors since the driver was loaded", 2, card(0, func(c *facts.Card) { c.ECCVolatile = of(int64(2)) }), Fail, "gpu.health/memory"},
		{"uncorrected errors in its life only", 2, card(0, func(c *facts.Card) { c.ECCVolatile, c.ECCAggregate = of(int64(0)), of(int64(3)) }), Pass, ""},
		{"Volta page retirement waits", 2, card(0, func(c *facts.Card) { c.RetiredPending = of(true) }), Warn, "gpu.health/reset"},
		{"no log: non-root, dmesg restricted", 2, noLog, Unknown, ""},
		{"nvidia-smi tells of one card of two", 2, card(1, func(c *facts.Card) { c.Name.Source, c.Reasons = "pci.ids", facts.Fact[[]string]{} }), Unknown, ""},
		{"WSL: the log is Windows'", 2, func(_ *rg, h *ho) { h.Kind = of("wsl") }, Unknown, ""},
		{"a log alone, without an Xid", 2, onlyLog, Unknown, ""},
	})
}

func times(n int, change func(*rg, *ho)) func(*rg, *ho) {
	return func(r *rg, h *ho) {
		for range n {
			change(r, h)
		}
	}
}

func TestXidChainNamesTheFirst(t *testing.T) {
	f := summaryOf(t, "gpu.health", 2, inTurn(xid(first, 31, "a"), xid(first, 62, "b"), xid(first, 45, "c"), xid(first, 79, "d"), xid(first, 119, "e")))
	if !strings.Contains(f.Summary, "Xid 79") || f.Remedy != "gpu.health/off-bus" || !strings.Contains(f.Note, "62") {
		t.Errorf("the worst that is no echo leads: %s / %s", f.Summary, f.Note)
	}
	f = summaryOf(t, "gpu.health", 2, inTurn(xid(first, 62, "b"), xid(first, 154, "recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"), xid(first, 45, "c")))
	if !strings.Contains(f.Summary, "Xid 62") || f.Verdict != Fail {
		t.Errorf("154 says what 62 asks for: %s %s", f.Verdict, f.Summary)
	}
	f = summaryOf(t, "gpu.health", 2, inTurn(xid(first, 62, "b"), xid(first, 154, "recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")))
	if f.Verdict != Warn {
		t.Errorf("the reset was done: %s %s", f.Verdict, f.Summary)
	}
}

func TestThrottle(t *testing.T) {
	reasons := func(names ...string) func(*rg, *ho) { return card(0, func(c *facts.Card) { c.Reasons = of(names) }) }
	runRows(t, "gpu.throttle", []row{
		{"idle", 2, nil, Pass, ""},
		{"at its power limit under load: normal", 2, reasons("sw_power_cap"), Pass, ""},
		{"hardware thermal slowdown", 2, reasons("hw_slowdown", "hw_thermal_slowdown"), Fail, "gpu.throttle/thermal"},
		{"power brake", 2, reasons("hw_slowdown", "hw_power_brake_slowdown"), Fail, "gpu.throttle/power-brake"},
		{"hardware slowdown alone, cool", 2, reasons("hw_slowdown"), Fail, "gpu.throttle/power-brake"},
		{"software thermal slowdown", 2, reasons("sw_thermal_slowdown"), Warn, "gpu.throttle/thermal"},
		{"88 °C", 2, card(1, func(c *facts.Card) { c.Temperature = of(88) }), Warn, "gpu.throttle/thermal"},
		{"the counter remembers", 2, card(1, func(c *facts.Card) { c.ReasonUS = of(map[string]int64{"hw_power_brake": 1500000}) }), Warn, "gpu.throttle/power-brake"},
		{"reasons N/A, as on Kepler", 2, everyCard(func(c *facts.Card) { c.Reasons, c.ReasonUS = facts.Fact[[]string]{}, facts.Fact[map[string]int64]{} }), Unknown, ""},
		{"one of two cards told", 2, card(0, func(c *facts.Card) { c.Reasons = facts.Fact[[]string]{} }), Unknown, ""},
	})
}

func TestALogThatLostItsBeginningSaysSo(t *testing.T) {
	late := func(_ *rg, h *ho) { h.Log.Since = of(int64(9000)) }
	if f := summaryOf(t, "gpu.health", 2, late); f.Verdict != Pass || !strings.Contains(f.Note, "begins 2.5 hours after the boot") {
		t.Errorf("%s: %s (%s)", f.Verdict, f.Summary, f.Note)
	}
	if f := summaryOf(t, "gpu.health", 2, func(*rg, *ho) {}); f.Note != "" {
		t.Errorf("a whole log: %s", f.Note)
	}
}

func TestThrottleOfCardsThatDoNotTell(t *testing.T) {
	mute := func(c *facts.Card) {
		c.Reasons, c.ReasonUS, c.Temperature = facts.Fact[[]string]{}, facts.Fact[map[string]int64]{}, facts.Fact[int]{}
	}
	runRows(t, "gpu.throttle", []row{
		{"N/A of every card", 2, everyCard(mute), Unknown, ""},
		{"N/A of one card", 2, card(1, mute), Unknown, ""},
		{"nvidia-smi -q not read", 2, inTurn(everyCard(mute), everyCard(func(c *facts.Card) { c.SMIDevice = facts.Fact[string]{} })), Unknown, ""},
		{"no cards", 2, onlyLog, Unknown, ""},
	})
}

func TestPowerLimit(t *testing.T) {
	lowered := card(0, func(c *facts.Card) { c.PowerLimit = of(350.0) })
	none := everyCard(func(c *facts.Card) { c.PowerLimit, c.PowerDefault = facts.Fact[float64]{}, facts.Fact[float64]{} })
	runRows(t, "gpu.power-limit", []row{
		{"at the default", 2, nil, Pass, ""},
		{"raised above it", 2, card(0, func(c *facts.Card) { c.PowerLimit = of(600.0) }), Pass, ""},
		{"lowered by hand", 2, lowered, Warn, "gpu.power-limit/lowered"},
		{"lowered by a unit at boot", 2, inTurn(lowered, func(_ *rg, h *ho) { h.CapUnits = of([]string{"/etc/systemd/system/cap.service"}) }), Pass, ""},
		{"a laptop's card reports none", 2, none, Skip, ""},
		{"the plain table has no default", 2, everyCard(func(c *facts.Card) { c.PowerDefault = facts.Fact[float64]{} }), Unknown, ""},
		{"nothing read", 2, inTurn(none, everyCard(func(c *facts.Card) { c.Persistence = facts.Fact[bool]{} })), Unknown, ""},
	})
	f := summaryOf(t, "gpu.power-limit", 2, card(0, func(c *facts.Card) { c.PowerMax = of(300.0) }))
	if !strings.Contains(f.Note, "sense pins") {
		t.Errorf("a 4090 of 300 W at most: %s", f.Note)
	}
}

func TestGenuine(t *testing.T) {
	id := func(device string) func(*rg, *ho) {
		return func(_ *rg, h *ho) {
			setDevice(h, first, func(d *facts.Device) { d.Product = device })
			h.Cards[0].SMIDevice = of(device)
		}
	}
	runRows(t, "gpu.genuine", []row{
		{"4090", 2, nil, Pass, ""},
		{"4090 as drivers before 510 count it", 2, everyCard(func(c *facts.Card) { c.MemoryMiB = of(int64(24217)) }), Pass, ""},
		{"48 GB 4090", 2, card(0, func(c *facts.Card) { c.MemoryMiB = of(int64(49140)) }), Warn, "gpu.genuine/modded"},
		{"a model that is sold with 8 GB and with 16", 1, inTurn(id("2d04"), card(0, func(c *facts.Card) {
			c.Name.Value, c.Part, c.VBIOS, c.MemoryMiB = "GeForce RTX 5060 Ti", of("2D04-300-A1"), of("98.06.1F.00.05"), of(int64(8151))
		})), Pass, ""},
		{"that model with 32 GB", 1, inTurn(id("2d04"), card(0, func(c *facts.Card) {
			c.Name.Value, c.Part, c.VBIOS, c.MemoryMiB = "GeForce RTX 5060 Ti", of("2D04-300-A1"), of("98.06.1F.00.05"), of(int64(32607))
		})), Warn, "gpu.genuine/modded"},
		{"laptop GPU in a mini PC", 1, inTurn(id("2757"), card(0, func(c *facts.Card) { c.Name.Value, c.Part = "GeForce RTX 4090 Laptop GPU", of("2757-300-A1") }), func(_ *rg, h *ho) { h.Board.ChassisType = of(35) }), Unknown, ""},
		{"4090 D is a model of its own", 1, inTurn(id("2685"), card(0, func(c *facts.Card) { c.Name.Value, c.Part = "GeForce RTX 4090 D", of("2685-300-A1") })), Pass, ""},
		{"4090 D that calls itself 4090", 1, inTurn(id("2685"), card(0, func(c *facts.Card) { c.Part = facts.Fact[string]{} })), Fail, "gpu.genuine/flashed"},
		{"die of a 4090 D under a 4090's id", 2, card(0, func(c *facts.Card) { c.Part = of("2685-300-A1") }), Fail, "gpu.genuine/flashed"},
		{"a part number of the board names no die", 2, card(0, func(c *facts.Card) { c.Part = of("900-5G180-1700-000") }), Pass, ""},
		{"bus and driver disagree", 2, card(0, func(c *facts.Card) { c.SMIDevice = of("2206") }), Fail, "gpu.genuine/flashed"},
		{"VBIOS of another generation", 2, card(0, func(c *facts.Card) { c.VBIOS = of("94.02.42.40.34") }), Warn, "gpu.genuine/flashed"},
		{"no maker", 2, card(0, func(c *facts.Card) { c.SubVend = "0000" }), Warn, "gpu.genuine/flashed"},
		{"laptop GPU in a tower", 1, inTurn(id("2757"), card(0, func(c *facts.Card) { c.Name.Value, c.Part = "GeForce RTX 4090 Laptop GPU", of("2757-300-A1") }), func(_ *rg, h *ho) { h.Board.ChassisType = of(3) }), Warn, "gpu.genuine/laptop"},
		{"laptop GPU in a laptop", 1, inTurn(id("2757"), card(0, func(c *facts.Card) { c.Name.Value, c.Part = "GeForce RTX 4090 Laptop GPU", of("2757-300-A1") }), func(_ *rg, h *ho) { h.Board.ChassisType = of(10) }), Unknown, ""},
		{"A6000 with ECC", 1, inTurn(id("2230"), card(0, func(c *facts.Card) {
			c.Name.Value, c.Part, c.VBIOS, c.MemoryMiB = "RTX A6000", of("2230-875-A1"), of("94.02.5C.00.02"), of(int64(46068))
		})), Pass, ""},
		{"a model that is not in the catalogue", 1, inTurn(id("fff0"), card(0, func(c *facts.Card) { c.Part = facts.Fact[string]{} })), Unknown, ""},
		{"memory not read", 2, everyCard(func(c *facts.Card) { c.MemoryMiB = facts.Fact[int64]{} }), Unknown, ""},
	})
}

func TestDriverVersion(t *testing.T) {
	version := func(v string) func(*rg, *ho) { return func(_ *rg, h *ho) { h.Driver.Version = of(v) } }
	model := func(device string) func(*rg, *ho) { return everyCard(func(c *facts.Card) { c.Product = device }) }
	runRows(t, "driver.version", []row{
		{"550 for Ada", 2, nil, Pass, ""},
		{"470 for CUDA 12", 2, inTurn(version("470.82.01"), model("2204")), Warn, "driver.version/old"},
		{"515 for Ada", 2, version("515.65.01"), Warn, "driver.version/old"},
		{"590 for Pascal", 2, inTurn(version("590.44.01"), model("1b06")), Warn, "driver.version/too-new"},
		{"580 for Pascal", 2, inTurn(version("580.95.05"), model("1b06")), Pass, ""},
		{"Blackwell with the proprietary module", 2, inTurn(version("580.95.05"), model("2b85"), func(_ *rg, h *ho) { h.Driver.Open = of(false) }), Warn, "driver.version/open-module"},
		{"Blackwell with the open module", 2, inTurn(version("580.95.05"), model("2b85"), func(_ *rg, h *ho) { h.Driver.Open = of(true) }), Pass, ""},
		{"the library is newer than the module", 2, inTurn(version("515.65.01"), logLine("api-mismatch", "", 0, "NVRM: API mismatch: the client has the version 525.125.06, but")), Fail, "driver.version/mismatch"},
		{"a container brought another library, the host's fits", 2, inTurn(func(_ *rg, h *ho) { h.Driver.CUDA.Source = "nvidia-smi:cuda_version" }, logLine("api-mismatch", "", 0, "NVRM: API mismatch: the client 'python' (pid 71) has the version 535.183.01, but")), Pass, ""},
		{"branch 1000 for Pascal", 2, inTurn(version("1000.10"), model("1b06")), Warn, "driver.version/too-new"},
		{"450 for GA100", 2, inTurn(version("450.248.02"), model("20b5")), Warn, "driver.version/old"},
		{"that was before the reboot", 2, logLine("api-mismatch", "", 0, "NVRM: API mismatch: the client has the version 550.90.07, but"), Pass, ""},
		{"only the module was asked: the stream was cut", 2, func(_ *rg, h *ho) { h.Gaps[facts.KindSMI] = "not reached" }, Unknown, ""},
		{"the library talks of a lost card", 2, func(_ *rg, h *ho) {
			h.Gaps[facts.KindSMI], h.Driver.SMIError = "failed", of("Unable to determine the device handle for GPU0000:21:00.0: Unknown Error")
		}, Pass, ""},
		{"not known", 2, func(_ *rg, h *ho) { h.Driver.Version = facts.Fact[string]{} }, Unknown, ""},
	})
	if f := summaryOf(t, "driver.version", 2, version("580.95.05")); !strings.Contains(f.Summary, "13.x") {
		t.Errorf("580 runs CUDA 13: %s", f.Summary)
	}
}

func TestPersistence(t *testing.T) {
	off := everyCard(func(c *facts.Card) { c.Persistence = of(false) })
	runRows(t, "driver.persistence", []row{
		{"on", 2, nil, Pass, ""},
		{"off, headless", 2, off, Warn, "driver.persistence/off"},
		{"off, with displays", 2, inTurn(off, everyCard(func(c *facts.Card) { c.Display = of(true) })), Pass, ""},
		{"off, one display", 2, inTurn(off, card(0, func(c *facts.Card) { c.Display = of(true) })), Warn, "driver.persistence/off"},
		{"N/A, as on Windows", 2, everyCard(func(c *facts.Card) { c.Persistence = facts.Fact[bool]{} }), Unknown, ""},
	})
}
