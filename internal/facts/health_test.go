package facts

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

func healthOf(t *testing.T, inner string) Card {
	t.Helper()
	h := FromSnapshot(snap(map[string]string{"cmd/nvidia-smi-q.xml": `<nvidia_smi_log><driver_version>595.58.03</driver_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:41:00.0"><product_name>NVIDIA RTX A6000</product_name>` + inner + `</gpu></nvidia_smi_log>`}))
	if len(h.Cards) != 1 {
		t.Fatalf("%d cards", len(h.Cards))
	}
	return h.Cards[0]
}

func TestReasons(t *testing.T) {
	for _, row := range []struct {
		name, xml string
		want      []string
		known     bool
	}{
		{"up to 525", `<clocks_throttle_reasons><clocks_throttle_reason_gpu_idle>Active</clocks_throttle_reason_gpu_idle><clocks_throttle_reason_hw_slowdown>Not Active</clocks_throttle_reason_hw_slowdown></clocks_throttle_reasons>`, []string{"gpu_idle"}, true},
		{"since 535", `<clocks_event_reasons><clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown></clocks_event_reasons>`, []string{"hw_thermal_slowdown"}, true},
		{"none in force", `<clocks_event_reasons><clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle></clocks_event_reasons>`, []string{}, true},
		{"Kepler prints N/A", `<clocks_throttle_reasons>N/A</clocks_throttle_reasons>`, nil, false},
		{"all N/A", `<clocks_event_reasons><clocks_event_reason_gpu_idle>N/A</clocks_event_reason_gpu_idle></clocks_event_reasons>`, nil, false},
		{"element missing", ``, nil, false},
	} {
		c := healthOf(t, row.xml)
		if c.Reasons.Known() != row.known || !slices.Equal(c.Reasons.Value, row.want) {
			t.Errorf("%s: %v (known %v)", row.name, c.Reasons.Value, c.Reasons.Known())
		}
	}
	c := healthOf(t, `<clocks_event_reasons_counters><clocks_event_reasons_counters_sw_power_cap>31637000000 us</clocks_event_reasons_counters_sw_power_cap><clocks_event_reasons_counters_hw_power_brake>0 us</clocks_event_reasons_counters_hw_power_brake></clocks_event_reasons_counters>`)
	if us := c.ReasonUS.Value; us["sw_power_cap"] != 31637000000 || len(us) != 2 {
		t.Errorf("counters: %v", us)
	}
}

func TestUncorrectedErrors(t *testing.T) {
	for _, row := range []struct {
		name, xml string
		want      int64
		known     bool
	}{
		{"535", `<ecc_errors><volatile><sram_correctable>9</sram_correctable><sram_uncorrectable>1</sram_uncorrectable><dram_uncorrectable>2</dram_uncorrectable></volatile></ecc_errors>`, 3, true},
		{"570 splits SRAM", `<ecc_errors><volatile><sram_uncorrectable_parity>1</sram_uncorrectable_parity><sram_uncorrectable_secded>1</sram_uncorrectable_secded><dram_uncorrectable>0</dram_uncorrectable></volatile></ecc_errors>`, 2, true},
		{"before 450", `<ecc_errors><volatile><single_bit><total>7</total></single_bit><double_bit><device_memory>4</device_memory><total>4</total></double_bit></volatile></ecc_errors>`, 4, true},
		{"without ECC", `<ecc_errors><volatile><dram_uncorrectable>N/A</dram_uncorrectable></volatile></ecc_errors>`, 0, false},
	} {
		c := healthOf(t, row.xml)
		if c.ECCVolatile.Value != row.want || c.ECCVolatile.Known() != row.known {
			t.Errorf("%s: %v", row.name, c.ECCVolatile)
		}
	}
}

func TestRemapAndRecovery(t *testing.T) {
	c := healthOf(t, `<remapped_rows><remapped_row_unc>1</remapped_row_unc><remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
<gpu_recovery_action>Drain and Reset</gpu_recovery_action><pci><pci_device_id>223010DE</pci_device_id><replay_counter>7</replay_counter></pci>`)
	if c.Remapped.Value != 1 || !c.RemapPending.Value || !c.RemapFailure.Known() || c.RemapFailure.Value || c.Recovery.Value != "Drain and Reset" || c.Replays.Value != 7 || c.SMIDevice.Value != "2230" {
		t.Errorf("%+v", c)
	}
	c = healthOf(t, `<remapped_rows>N/A</remapped_rows><gpu_reset_status><reset_required>Yes</reset_required><drain_and_reset_recommended>No</drain_and_reset_recommended></gpu_reset_status>`)
	if c.RemapPending.Known() || c.Recovery.Value != "Reset" {
		t.Errorf("text N/A, and 535's reset status: %v %v", c.RemapPending, c.Recovery)
	}
	c = healthOf(t, `<gpu_reset_status><reset_required>Requested functionality has been deprecated</reset_required></gpu_reset_status>`)
	if c.Recovery.Known() {
		t.Errorf("a deprecated element says nothing: %v", c.Recovery)
	}
}

func TestAERFacts(t *testing.T) {
	d := "sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0/"
	h := FromSnapshot(snap(cardFiles("0000:41:00.0", "0000:40:01.1", map[string]string{
		d + "aer_dev_correctable": "RxErr 1\nBadTLP 2\nBadDLLP 0\nRollover 0\nTimeout 3\nNonFatalErr 900\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 906\n",
		d + "aer_dev_fatal":       "DLP 0\nTOTAL_ERR_FATAL 0\n",
		d + "aer_dev_nonfatal":    "CmpltTO 1\nTOTAL_ERR_NONFATAL 1\n",
	})))
	a := h.Cards[0].AER
	if a.CountCorr.Value != 6 || a.CountNonFatal.Value != 1 || !a.CountFatal.Known() || a.CountFatal.Value != 0 {
		t.Errorf("%+v", a)
	}
	e := make([]byte, 0x20)
	binary.LittleEndian.PutUint32(e, extAER)
	binary.LittleEndian.PutUint32(e[4:], 1<<5)
	binary.LittleEndian.PutUint32(e[0x10:], 1<<6)
	c := ParseConfig(configImage(4, 4|16<<4, 1|16<<4, e, acs(0)))
	if c.AERUncor == nil || *c.AERUncor != 1<<5 || *c.AERCor != 1<<6 {
		t.Errorf("status words: %v %v", c.AERUncor, c.AERCor)
	}
}

func TestAEROwner(t *testing.T) {
	services := func(names ...string) *Snapshot {
		s := snap(map[string]string{})
		s.Dirs = map[string][]string{"sys/bus/pci_express/devices": names}
		return s
	}
	log := func(text string) *Snapshot { return snap(map[string]string{"cmd/dmesg.txt": text}) }
	for _, row := range []struct {
		name        string
		snap        *Snapshot
		owns, known bool
	}{
		{"a port with the AER service", services("0000:00:01.1:pcie001", "0000:00:01.1:pcie002"), true, true},
		{"ports without it", services("0000:00:01.1:pcie001", "0000:00:01.1:pcie004"), false, true},
		{"nothing listed", services(), false, false},
		{"granted by _OSC", log("acpi PNP0A08:00: _OSC: OS now controls [PCIeHotplug PME AER PCIeCapability LTR DPC]"), true, true},
		{"refused by _OSC", log("acpi PNP0A08:00: _OSC: platform does not support [AER LTR DPC]\nacpi PNP0A08:00: _OSC: OS now controls [PCIeHotplug PME PCIeCapability]"), false, true},
		{"the root port says so", log("pcieport 0000:00:01.1: AER: enabled with IRQ 28"), true, true},
		{"a log of something else", log("usb 1-1: new device"), false, false},
	} {
		if f := FromSnapshot(row.snap).AEROwned; f.Known() != row.known || f.Value != row.owns {
			t.Errorf("%s: %+v", row.name, f)
		}
	}
}

func TestIOMMUOfALog(t *testing.T) {
	const boot = "[    0.000000] Linux version 6.8.0\n"
	for _, row := range []struct {
		name, text string
		on, known  bool
		domain     string
	}{
		{"groups and a type", boot + "iommu: Default domain type: Translated\npci 0000:01:00.0: Adding to iommu group 55\n", true, true, "Translated"},
		{"an older kernel", boot + "iommu: Adding device 0000:00:00.0 to group 0\n", true, true, ""},
		{"the type is printed without an IOMMU", boot + "iommu: Default domain type: Translated\n", false, true, ""},
		{"tables are listed before it is decided", boot + "DMAR: Host address width 46\nAMD-Vi: Using global IVHD EFR:0x0\n", false, true, ""},
		{"a piece of a log without a word of it", "pci 0000:01:00.0: enabling device\n", false, false, ""},
		{"a fault in a piece of a log", "nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]\n", true, true, ""},
	} {
		m := FromSnapshot(snap(map[string]string{"cmd/dmesg.txt": row.text})).IOMMU
		if m.On.Known() != row.known || m.On.Value != row.on || m.Default.Value != row.domain {
			t.Errorf("%s: %+v", row.name, m)
		}
	}
}

func TestLogEventsOfErrors(t *testing.T) {
	for _, row := range []struct{ name, line, kind, bdf string }{
		{"correctable", "pcieport 0000:00:03.1: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)", "aer", "0000:00:03.1"},
		{"older word", "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=00e5(Receiver ID)", "aer", "0000:00:1c.5"},
		{"fatal", "pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)", "aer-fatal", "0000:00:02.0"},
		{"non-fatal", "nvidia 0000:41:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer", "aer-nonfatal", "0000:41:00.0"},
		{"AER is switched on: no error", "pcieport 0000:00:01.1: AER: enabled with IRQ 28", "", ""},
		{"AMD-Vi names the device in front", "nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]", "iommu-fault", "0000:07:00.0"},
		{"AMD-Vi names it within", "AMD-Vi: Event logged [IO_PAGE_FAULT device=07:00.0 domain=0x0003 address=0x80000040 flags=0x0020]", "iommu-fault", "0000:07:00.0"},
		{"DMAR", "DMAR: [DMA Write NO_PASID] Request device [0x41:0x00.0] fault addr 0xf000 [fault reason 0x05] PTE Write access is not set", "iommu-fault", "0000:41:00.0"},
		{"another driver's XID", "r8169 0000:05:00.0 eth0: RTL8168h, 3c:ec:ef:00:00:01, XID 541, IRQ 60", "", ""},
		{"off the bus, driver 440", "NVRM: GPU at 00000000:01:00.0 has fallen off the bus.", "off-bus", "0000:01:00.0"},
		{"off the bus, driver 450", "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", "off-bus", "0000:01:00.0"},
		{"off the bus, with PCI in front", "NVRM: GPU at PCI:0000:41:00 has fallen off the bus", "off-bus", "0000:41:00.0"},
		{"an Xid", "NVRM: Xid (PCI:0000:0a:00): 56, CMDre 00000000", "xid", "0000:0a:00.0"},
	} {
		ev, ok := logEvent(row.line)
		if ok != (row.kind != "") || ev.Kind != row.kind || ev.BDF != row.bdf {
			t.Errorf("%s: %+v", row.name, ev)
		}
	}
}

func TestTwoLogs(t *testing.T) {
	line := "NVRM: Xid (PCI:0000:0a:00): 119, pid=7, name=python3, Timeout after 6s\n"
	h := FromSnapshot(snap(map[string]string{
		"cmd/dmesg.txt":   "[  10.000000] Linux version 6.8.0\n[ 900.000000] " + line,
		"cmd/journal.txt": "Sep 19 16:18:02 host-a kernel: " + line + "Sep 18 01:00:00 host-a kernel: NVRM: Xid (PCI:0000:0a:00): 56, CMDre 00000000\n",
	}))
	if n := len(h.Log.Events); n != 2 || h.Log.Events[1].Code != 56 {
		t.Errorf("one event said twice and one of the second log: %+v", h.Log.Events)
	}
}

func FuzzHealth(f *testing.F) {
	f.Add(`<remapped_rows>N/A</remapped_rows>`, "pci 0000:01:00.0: Adding to iommu group 1")
	f.Add(`<ecc_errors><volatile><double_bit><total>99999999999999999999</total></double_bit></volatile></ecc_errors>`, "DMAR: Request device [0x41:00.0] fault")
	f.Fuzz(func(t *testing.T, inner, log string) {
		h := FromSnapshot(snap(map[string]string{"cmd/dmesg.txt": log, "cmd/nvidia-smi-q.xml": `<nvidia_smi_log><gpu id="00000000:41:00.0">` + inner + `</gpu></nvidia_smi_log>`}))
		for _, e := range h.Log.Events {
			if e.BDF != "" && !bdfPattern.MatchString(e.BDF) {
				t.Errorf("%q is no address: %s", e.BDF, strings.TrimSpace(e.Text))
			}
		}
	})
}
