package facts

// Device is one PCI function.
type Device struct {
	BDF      string       `json:"bdf"`   // dddd:bb:dd.f, lower case
	Class    string       `json:"class"` // six hex digits, "030000"
	Vendor   string       `json:"vendor"`
	Product  string       `json:"device"`
	SubVend  string       `json:"subsystem_vendor,omitempty"`
	SubDev   string       `json:"subsystem_device,omitempty"`
	Label    string       `json:"label,omitempty"`    // a name for people
	Chain    []string     `json:"chain,omitempty"`    // BDFs from the root port down to the parent
	RootBus  string       `json:"root_bus,omitempty"` // "0000:40" of pci0000:40
	Driver   Fact[string] `json:"driver,omitzero"`    // "" when known to have none
	NUMA     Fact[int]    `json:"numa_node,omitzero"`
	Socket   Fact[int]    `json:"socket,omitzero"` // physical package nearest to the device
	BARs     []BAR        `json:"bars,omitempty"`
	Link     Link         `json:"link"`
	PortType Fact[string] `json:"port_type,omitzero"` // root, upstream, downstream, endpoint …
	Second   Fact[int]    `json:"secondary_bus,omitzero"`
	Subord   Fact[int]    `json:"subordinate_bus,omitzero"`
	ACS      Fact[int]    `json:"acs_control,omitzero"`   // control word of extended capability 0x000d
	Extended Fact[bool]   `json:"extended_read,omitzero"` // extended configuration space was read: what it lacks is not there
	Presence Fact[bool]   `json:"slot_presence,omitzero"` // SltSta.PresDet of a port
	VF       bool         `json:"vf,omitempty"`           // SR-IOV virtual function
	Removed  bool         `json:"external,omitempty"`     // behind Thunderbolt or USB4
	AER      AER          `json:"aer,omitzero"`
	NetNames []string     `json:"net,omitempty"`
}

// AER is the function's Advanced Error Reporting: the status words of extended capability 0x0001, and the
// kernel's counters since boot (aer_dev_nonfatal and _fatal: the TOTAL lines; aer_dev_correctable: errors of the link).
type AER struct {
	Uncorrectable Fact[int]   `json:"uncorrectable_status,omitzero"`
	Correctable   Fact[int]   `json:"correctable_status,omitzero"`
	CountCorr     Fact[int64] `json:"correctable_count,omitzero"`
	CountNonFatal Fact[int64] `json:"nonfatal_count,omitzero"`
	CountFatal    Fact[int64] `json:"fatal_count,omitzero"`
}

// BAR is one base address register. Size and Start are bytes.
type BAR struct {
	Index      int    `json:"index"`
	Start      uint64 `json:"start"`
	Size       uint64 `json:"size"`
	Mem        bool   `json:"mem"`
	Mem64      bool   `json:"mem64"`
	Prefetch   bool   `json:"prefetch"`
	Unassigned bool   `json:"unassigned"`
	Source     string `json:"source"`
}

// Link is the PCIe link at this function's own upstream side (for a port: the link below a root or
// downstream port, the link above an upstream port). Width is lanes, speed is GT/s.
// Broken is known and true when config reads answered 0xFFFF (width 63, speed Unknown).
type Link struct {
	Width    Fact[int]     `json:"width,omitzero"`
	MaxWidth Fact[int]     `json:"max_width,omitzero"`
	Speed    Fact[float64] `json:"speed,omitzero" unit:"GT/s"`
	MaxSpeed Fact[float64] `json:"max_speed,omitzero" unit:"GT/s"`
	Broken   Fact[bool]    `json:"broken,omitzero"`
}
