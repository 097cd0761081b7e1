package rigsim

import (
	"fmt"
	"strings"
)

// The kinds of faults of cards, their links and their firmware.
const (
	GSPTimeout     Kind = "gsp-timeout"
	RowRemap       Kind = "row-remap"
	HotCard        Kind = "hot-card"
	LowPowerLimit  Kind = "low-power-limit"
	ModdedMemory   Kind = "modded-memory"
	FlashedVBIOS   Kind = "flashed-vbios"
	IOMMUFaults    Kind = "iommu-faults"
	LegacyBoot     Kind = "legacy-boot"
	LinkErrors     Kind = "link-errors"
	FatalLink      Kind = "fatal-link"
	ACSRedirect    Kind = "acs-redirect"
	OldDriver      Kind = "old-driver"
	PersistenceOff Kind = "persistence-off"
)

// Figures and words that the faults leave behind, as real hosts print them.
const (
	driverTooOld         = "515.65.01" // of 2022, before Ada
	acsServerSwitch      = 0x1d        // SrcValid, ReqRedir, CmpltRedir, UpstreamFwd: as server boards leave it
	linkErrorsSeen       = 12
	gspTimeoutWords      = "Timeout after 6s of waiting for RPC response from GPU%d GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4)."
	moddedMemoryMiB      = 49140
	loweredPowerWatt     = 400
	ampereVBIOS          = "94.02.42.C0.0E"
	translatedIOMMU      = "DMA-FQ"
	correctableError     = "PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Receiver ID)"
	uncorrectedFatal     = "PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Requester ID)"
	pageFaultOfTheIOMMU  = "AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x%04x address=0x%x flags=0x0020]"
	deviceErrorStatus    = "  device [%s:%s] error status/mask=00000040/00006000"
	completionTimeoutBit = "   [14] CmpltTO                (First)"
)

// cardHealth is what the driver says of one card beside its figures. The zero value is a healthy card.
type cardHealth struct {
	NoPersistence bool
	Hot           bool // hardware thermal slowdown is in force
	RemapPending  bool // a faulty row is set aside at the next reset
}

func (h cardHealth) persistence() string {
	if h.NoPersistence {
		return "Disabled"
	}
	return "Enabled"
}

func cardFaults() []Fault {
	return append([]Fault{
		{Kind: GSPTimeout, Words: "the firmware of the last card did not answer, twice (Xid 119)", Checks: []string{"gpu.health"}, plant: func(m *machine) {
			c := m.last()
			for range 2 {
				m.Log = append(m.Log, fmt.Sprintf("NVRM: Xid (PCI:%s): 119, pid=20243, name=python3, "+gspTimeoutWords, strings.TrimSuffix(c.BDF, ".0"), c.Index))
			}
		}},
		{Kind: RowRemap, Words: "a faulty row of the last card waits for a reset", Checks: []string{"gpu.health"}, plant: func(m *machine) { m.last().Health.RemapPending = true }},
		{Kind: HotCard, Words: "the last card is slowed for heat", Checks: []string{"gpu.throttle"}, plant: func(m *machine) { m.last().Health.Hot = true }},
		{Kind: LowPowerLimit, Words: "somebody lowered the power limit of the last card", Checks: []string{"gpu.power-limit"}, plant: func(m *machine) { m.last().LimitW = loweredPowerWatt }},
		{Kind: ModdedMemory, Words: "the last card has twice its memory", Checks: []string{"gpu.genuine"}, Traces: []string{"firmware.resizable-bar"}, plant: func(m *machine) { m.last().Model.MemoryMiB = moddedMemoryMiB }},
		{Kind: FlashedVBIOS, Words: "the VBIOS of the last card is that of an older generation", Checks: []string{"gpu.genuine"}, plant: func(m *machine) { m.last().Model.VBIOS = ampereVBIOS }},
		{Kind: OldDriver, Words: "the driver is older than the cards", Checks: []string{"driver.version"}, Traces: []string{"runtime.torch"}, shape: func(m *machine) { m.Driver = driverTooOld }},
		{Kind: PersistenceOff, Words: "persistence mode is off", Checks: []string{"driver.persistence"}, plant: func(m *machine) {
			for _, c := range m.Cards {
				c.Health.NoPersistence = true
			}
		}},
	}, pathFaults()...)
}

// pathFaults lie between the cards and the processor.
func pathFaults() []Fault {
	return []Fault{
		{Kind: IOMMUFaults, Words: "the IOMMU translates, and refused accesses of the last card", Checks: []string{"firmware.iommu"}, plant: func(m *machine) { m.IOMMUType = translatedIOMMU }, finish: func(m *machine) {
			for i := range 3 {
				m.Log = append(m.Log, fmt.Sprintf("nvidia %s: "+pageFaultOfTheIOMMU, m.last().BDF, 3, 0x80000040+i<<8))
			}
		}},
		{Kind: LegacyBoot, Words: "the machine was started without UEFI", Checks: []string{"firmware.boot-mode"}, plant: func(m *machine) { m.Legacy = true }},
		{Kind: LinkErrors, Words: "the link of the last card corrects errors", Checks: []string{"pcie.errors"}, plant: func(m *machine) {
			d := m.last().Port
			d.LinkErrors = linkErrorsSeen
			m.Log = append(m.Log, fmt.Sprintf("pcieport %s: %s", d.BDF, correctableError), fmt.Sprintf("pcieport %s: "+deviceErrorStatus, d.BDF, d.Vendor, d.Device), fmt.Sprintf("pcieport %s:    [ 6] BadTLP                ", d.BDF))
		}},
		{Kind: FatalLink, Words: "the link of the last card broke once since boot", Checks: []string{"pcie.errors"}, plant: func(m *machine) {
			d := m.last().Port
			m.Log = append(m.Log, fmt.Sprintf("pcieport %s: %s", d.BDF, uncorrectedFatal), fmt.Sprintf("pcieport %s: %s", d.BDF, completionTimeoutBit))
		}},
		{Kind: ACSRedirect, Words: "the bridges above the cards redirect, and the cards reach each other", Checks: []string{"pcie.acs"}, Traces: []string{"topology.p2p"}, plant: func(m *machine) {
			m.P2P = "OK"
			for _, c := range m.Cards {
				c.Port.ACS = acsServerSwitch
			}
		}},
	}
}

// writePortServices notes the persistence daemon, and lists the services that the kernel gives to root ports where it handles PME and AER itself.
func writePortServices(t *tree, m *machine) {
	t.file("run/nvidia-persistenced/nvidia-persistenced.pid", "1187")
	for _, d := range m.Devs {
		if d.Kind == 4 {
			for _, service := range []string{"pcie001", "pcie002"} {
				t.mkdir("sys/bus/pci_express/devices/" + d.BDF + ":" + service)
			}
		}
	}
}

// writeEFI lays out what a kernel shows that was started by UEFI.
func writeEFI(t *tree, m *machine) {
	t.mkdir("sys/firmware/acpi")
	if m.Legacy {
		return
	}
	t.mkdir("sys/firmware/efi/efivars")
	guid := "-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	t.bytes("sys/firmware/efi/efivars/SecureBoot"+guid, []byte{6, 0, 0, 0, 0}, 0o644)
	t.bytes("sys/firmware/efi/efivars/SetupMode"+guid, []byte{6, 0, 0, 0, 1}, 0o644)
}
