package sample

import "math"

// Metric is one figure of a card.
type Metric int

// The metrics, in the order in which a series keeps them. The fields are nvidia-smi's; the unit is that of the value.
const (
	Power       Metric = iota // drawn, W
	PowerLimit                // enforced, W
	Temperature               // core, °C
	MemoryTemp                // °C; consumer cards do not tell it
	CoreClock                 // clocks.sm, MHz
	MemoryClock               // MHz
	Reasons                   // bits of clocks_event_reasons.active, see the Reason constants
	Fan                       // %
	LinkGen                   // PCIe generation now
	LinkWidth                 // lanes now
	ECC                       // uncorrected volatile errors
	Utilization               // %
	MemoryUsed                // MiB
	MemoryTotal               // MiB
	Metrics                   // how many there are
)

// metrics describes each: its name in files, its unit, and the fields of nvidia-smi that give it, newest first.
var metrics = [Metrics]struct {
	key, unit string
	fields    []string
	least     float64 // a value outside of least and most is no value
	most      float64
}{
	Power:       {"power", "W", []string{"power.draw"}, 0, 5000},
	PowerLimit:  {"power_limit", "W", []string{"enforced.power.limit"}, 0, 5000},
	Temperature: {"temperature", "C", []string{"temperature.gpu"}, -50, 250},
	MemoryTemp:  {"memory_temperature", "C", []string{"temperature.memory"}, -50, 250},
	CoreClock:   {"core_clock", "MHz", []string{"clocks.sm"}, 0, 20000},
	MemoryClock: {"memory_clock", "MHz", []string{"clocks.mem"}, 0, 50000},
	Reasons:     {"reasons", "", []string{"clocks_event_reasons.active", "clocks_throttle_reasons.active"}, 0, 1 << 32},
	Fan:         {"fan", "%", []string{"fan.speed"}, 0, 300},
	LinkGen:     {"link_gen", "", []string{"pcie.link.gen.current"}, 1, 9},
	LinkWidth:   {"link_width", "lanes", []string{"pcie.link.width.current"}, 1, 32},
	ECC:         {"ecc_uncorrected", "", []string{"ecc.errors.uncorrected.volatile.total"}, 0, 1 << 40},
	Utilization: {"utilization", "%", []string{"utilization.gpu"}, 0, 100},
	MemoryUsed:  {"memory_used", "MiB", []string{"memory.used"}, 0, 1 << 24},
	MemoryTotal: {"memory_total", "MiB", []string{"memory.total"}, 0, 1 << 24},
}

// Key is the metric's name in files.
func (m Metric) Key() string { return metrics[m].key }

// Unit is what its values are counted in; "" for a plain number.
func (m Metric) Unit() string { return metrics[m].unit }

// Bits of Reasons: why clocks are lower than they could be (nvml.h, nvmlClocksEventReason*).
const (
	ReasonIdle       = 0x1
	ReasonAppClocks  = 0x2
	ReasonPowerCap   = 0x4 // software power cap: normal at full load
	ReasonHWSlowdown = 0x8
	ReasonSyncBoost  = 0x10
	ReasonSWThermal  = 0x20
	ReasonHWThermal  = 0x40
	ReasonPowerBrake = 0x80 // the supply or the board asked for it
)

// ReasonHot are the bits that mean heat; ReasonBad all that should not be set on a sound card under load.
const (
	ReasonHot = ReasonSWThermal | ReasonHWThermal
	ReasonBad = ReasonHot | ReasonHWSlowdown | ReasonPowerBrake
)

// Values are a card's figures at one time; what was not given is absent.
type Values [Metrics]float64

// NoValues has every metric absent.
func NoValues() Values {
	var v Values
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

// Get is a metric's value, and whether it was given.
func (v Values) Get(m Metric) (float64, bool) { return v[m], !math.IsNaN(v[m]) }

// Has says whether any of some bits of Reasons is set; a card that gives no reasons has none.
func (v Values) Has(bits uint64) bool {
	r, ok := v.Get(Reasons)
	return ok && uint64(r)&bits != 0
}
