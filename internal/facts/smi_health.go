package facts

import (
	"encoding/xml"
	"strings"
)

// smiHealth is what `nvidia-smi -q -x` says of a card's health. Elements were renamed within one DTD: throttle reasons
// became event reasons with 535, and the ECC counters were split with 570.
type smiHealth struct {
	BoardPart string  `xml:"board_part_number"`
	Events    smiTree `xml:"clocks_event_reasons"`
	Throttle  smiTree `xml:"clocks_throttle_reasons"`
	Counters  smiTree `xml:"clocks_event_reasons_counters"`
	SM        string  `xml:"clocks>sm_clock"`
	SMMax     string  `xml:"max_clocks>sm_clock"`
	MemTemp   string  `xml:"temperature>memory_temp"`
	SlowTemp  string  `xml:"temperature>gpu_temp_slow_threshold"`
	Target    string  `xml:"temperature>gpu_target_temperature"`
	ECC       string  `xml:"ecc_mode>current_ecc"`
	Volatile  smiTree `xml:"ecc_errors>volatile"`
	Aggregate smiTree `xml:"ecc_errors>aggregate"`
	Retire    string  `xml:"retired_pages>pending_retirement"`
	Blacklist string  `xml:"retired_pages>pending_blacklist"` // the same, up to 450
	RemapUnc  string  `xml:"remapped_rows>remapped_row_unc"`  // remapped_rows is the text N/A where a card has none
	RemapPend string  `xml:"remapped_rows>remapped_row_pending"`
	RemapFail string  `xml:"remapped_rows>remapped_row_failure"`
	Recovery  string  `xml:"gpu_recovery_action"`             // 570 and later
	Reset     string  `xml:"gpu_reset_status>reset_required"` // 535
	Drain     string  `xml:"gpu_reset_status>drain_and_reset_recommended"`
	Fabric    string  `xml:"fabric>state"`
}

// smiTree is an element whose children have names that depend on the driver.
type smiTree struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Kids    []smiTree `xml:",any"`
}

// applyHealth joins the health of a card with it.
func applyHealth(c *Card, g smiGPU) {
	const src = "nvidia-smi:"
	c.BoardPart = smiText(src+"board_part_number", g.BoardPart)
	c.Reasons = First(activeReasons(src+"clocks_event_reasons", g.Events), activeReasons(src+"clocks_throttle_reasons", g.Throttle))
	c.ReasonUS = reasonTimes(src+"clocks_event_reasons_counters", g.Counters)
	c.ClockSM = smiInt[int](src+"clocks/sm_clock", g.SM)
	c.ClockSMMax = smiInt[int](src+"max_clocks/sm_clock", g.SMMax)
	c.TempMemory = smiInt[int](src+"temperature/memory_temp", g.MemTemp)
	c.TempSlowdown = smiInt[int](src+"temperature/gpu_temp_slow_threshold", g.SlowTemp)
	c.TempTarget = smiInt[int](src+"temperature/gpu_target_temperature", g.Target)
	c.ECC = smiBool(src+"ecc_mode/current_ecc", g.ECC)
	c.ECCVolatile = uncorrected(src+"ecc_errors/volatile", g.Volatile)
	c.ECCAggregate = uncorrected(src+"ecc_errors/aggregate", g.Aggregate)
	c.RetiredPending = First(smiBool(src+"retired_pages/pending_retirement", g.Retire), smiBool(src+"retired_pages/pending_blacklist", g.Blacklist))
	c.Remapped = smiInt[int64](src+"remapped_rows/remapped_row_unc", g.RemapUnc)
	c.RemapPending = smiBool(src+"remapped_rows/remapped_row_pending", g.RemapPend)
	c.RemapFailure = smiBool(src+"remapped_rows/remapped_row_failure", g.RemapFail)
	c.Recovery = recovery(g)
	c.Replays = smiInt[int64](src+"pci/replay_counter", g.PCI.Replays)
	if id := strings.ToLower(strings.TrimSpace(g.PCI.Device)); len(id) == 8 && id[4:] == "10de" {
		c.SMIDevice = Of(id[:4], src+"pci/pci_device_id")
	}
	c.Fabric = smiText(src+"fabric/state", g.Fabric)
}

// recovery is what the driver asks for. Drivers of 535 said it with two yes-or-no elements.
func recovery(g smiGPU) Fact[string] {
	const src = "nvidia-smi:gpu_reset_status"
	reset, drain := smiBool(src, g.Reset), smiBool(src, g.Drain)
	switch {
	case reset.Value:
		return Of("Reset", src)
	case drain.Value:
		return Of("Drain and Reset", src)
	}
	f := smiText("nvidia-smi:gpu_recovery_action", g.Recovery)
	if !f.Known() && reset.Known() && drain.Known() {
		return Of("None", src)
	}
	return f
}

// activeReasons lists the reasons that are in force, without their common prefix. A driver that prints N/A for all of
// them says nothing.
func activeReasons(src string, t smiTree) Fact[[]string] {
	active, told := []string{}, false
	for _, k := range t.Kids {
		on := smiBool(src, k.Text)
		told = told || on.Known()
		if on.Value {
			name := strings.TrimPrefix(strings.TrimPrefix(k.XMLName.Local, "clocks_event_reason_"), "clocks_throttle_reason_")
			active = append(active, name)
		}
	}
	if !told {
		return Fact[[]string]{}
	}
	return Of(active, src)
}

// reasonTimes are microseconds since the driver was loaded, by reason.
func reasonTimes(src string, t smiTree) Fact[map[string]int64] {
	out := map[string]int64{}
	for _, k := range t.Kids {
		if us, ok := smiFloat(k.Text); ok {
			out[strings.TrimPrefix(k.XMLName.Local, "clocks_event_reasons_counters_")] = int64(us)
		}
	}
	if len(out) == 0 {
		return Fact[map[string]int64]{}
	}
	return Of(out, src)
}

// uncorrected sums the counters of errors that ECC could not correct: the sram_ and dram_uncorrectable… of 510 and
// later, else the total of double_bit. Its N/A on a card without ECC leaves the fact absent.
func uncorrected(src string, t smiTree) Fact[int64] {
	var sum Fact[int64]
	add := func(text string) {
		if n, ok := smiFloat(text); ok {
			sum = Of(sum.Value+int64(n), src)
		}
	}
	for _, k := range t.Kids {
		name := k.XMLName.Local
		switch {
		case strings.HasPrefix(name, "sram_uncorrectable"), strings.HasPrefix(name, "dram_uncorrectable"):
			add(k.Text)
		case name == "double_bit":
			for _, part := range k.Kids {
				if part.XMLName.Local == "total" {
					add(part.Text)
				}
			}
		}
	}
	return sum
}
