package inventory

import (
	"github.com/hashicorp/hcl/v2"

	"preflight/internal/catalog"
)

// Inventory is every declaration of one load, merged over all files.
type Inventory struct {
	Rigs      []*Rig
	Profiles  map[string]*Profile
	Workloads []*Workload
	Catalog   catalog.Additions    // rows that the owner adds to the built-in catalogue
	Files     map[string]*hcl.File // for snippets
}

// Rig is a declared host. Optional values are pointers or empty; nothing is guessed.
type Rig struct {
	Name    string
	Address string // host, host:port or an ssh_config alias
	Cards   *int   // how many cards the owner expects
	GPU     string // catalogue slug, "" when not declared
	Profile *Profile
	Group   string
	SSH     SSH
	PSUs    []PSU
	Mains   *Mains
	Chassis *Chassis
	Labels  map[string]string

	Python       string
	NIC          string
	SlurmNode    string
	PricePerHour *float64

	Range  hcl.Range            // of the rig block's header
	Ranges map[string]hcl.Range // of attributes and blocks, by path ("psu[0].watts")
}

// SSH says how to reach a rig; empty fields fall back to ~/.ssh/config and its defaults.
type SSH struct {
	User           string
	Port           int
	IdentityFiles  []string
	JumpHost       string // comma-separated chain, as ProxyJump
	KnownHostsFile string
	HostKeys       string // "strict" or "accept-new"; "" means the command line's choice
	ConnectTimeout int    // seconds; 0 means the default
}

// PSU is a declared supply, or several equal ones working as one.
type PSU struct {
	Watts int      // rating of one unit, output watts
	Count int      // units; default 1
	Spare int      // redundant units (N+1: 1)
	Cards []string // which cards these supplies feed; empty: all
	Range hcl.Range
}

// Mains is what feeds the supplies.
type Mains struct {
	Volts    float64
	Amps     float64 // breaker rating of one circuit
	Circuits int
	Shared   string // name of the circuits, where other rigs hang on them too; "" means that none does
	Range    hcl.Range
}

// Chassis is how the cards sit.
type Chassis struct {
	Cooling string // "air", "blower", "water", ""
	Mount   string // "slot", "riser", "open", "sxm", ""
	Slots   []Slot
	Range   hcl.Range
}

// Slot is an expansion-slot position counted in pitches of 20.32 mm.
type Slot struct {
	Position  int
	Card      string  // BDF, PCI path from the root port, or card UUID hash; "" when empty
	Width     int     // wired lanes; 0 when not declared
	Thickness float64 // of the card, in slot pitches; 0 when not declared
	Range     hcl.Range
}

// Profile is a named policy. A nil value means: as in the profile it extends, at last the built-in table.
type Profile struct {
	Name                                             string
	Extends                                          string
	PSUMargin                                        *float64 // usable ÷ draw below this fails
	PSUNote                                          *float64 // below this passes with a note
	AllowX8                                          *bool    // an x8 link by design passes
	Cores                                            *int     // physical cores for the whole rig
	RAMPerCard                                       *float64 // GiB
	StorageTB                                        *float64 // NVMe, 10^12 bytes
	FreeSlots                                        *int     // between air-cooled cards
	MainsLoad                                        *float64 // continuous share of a breaker's rating; default 0.8
	NCCLPass                                         *float64 // share of the expectation
	NCCLWarn                                         *float64
	RequireP2P                                       *bool
	BurnHot, BurnWarm, BurnSpread, BurnSag, BurnLoad *float64 // of a burn-in, see the profile block

	FitMargin     *float64 // share of a card's memory kept for fragmentation
	FitBusy       *float64 // share of a card's peak that a training reaches
	FitOverlap    *float64 // share of the computing behind which communication can hide
	FitEfficiency *float64 // scaling efficiency from which links suit a job

	Require    []string // check ids; nil means the default
	Acceptance *bool
	Rules      []SiteRule
	Range      hcl.Range
}

// SiteRule is a site's own check: an HCL expression over facts.
type SiteRule struct {
	Name    string
	Assert  hcl.Expression
	Message string
	Range   hcl.Range

	scope *hcl.EvalContext // variables, locals and functions that the expression may use; nil: functions alone
}

// Workload is a declared training or serving job, judged by `fit` and at the end of `check`. Zero and "" are: not said.
type Workload struct {
	Name       string
	Parameters float64 // count; "7B" is 7e9
	Model      string  // by name
	Config     string  // path of a config.json, from the folder of the inventory
	Method     string  // full, lora, qlora, inference, ppo

	Precision     string
	Optimizer     string
	Sequence      int
	Batch         int // sequences on one card at a time
	GlobalBatch   int // sequences of one optimizer step over all cards
	Checkpointing string
	Attention     string
	Strategy      string // auto, ddp, zero-1, zero-2, zero-3, fsdp, pipeline, tensor
	Requests      int
	LoRARank      int
	Tokens        float64 // of the whole training
	Extra         map[string]string
	Range         hcl.Range
}
