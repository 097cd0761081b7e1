package wire

import (
	"errors"
	"fmt"
)

// CommandBurn puts all cards under load at once: arithmetic whose results are compared bit by bit, and patterns in memory.
const CommandBurn = "burn"

// Phases of a burn.
const (
	PhaseBurnLoad = "burn-load" // kernels are loaded and timed, memory is reserved, one card after another
	PhaseBurn     = "burn"      // the load; it begins on all cards together
)

// BurnRequest says how long and how much.
type BurnRequest struct {
	Seconds float64 `json:"seconds"`
	Memory  float64 `json:"memory,omitempty"` // share of the free memory to check; 0 means BurnMemory
	Kernel  float64 `json:"kernel,omitempty"` // seconds that one kernel should take; 0 means BurnKernel
	Report  float64 `json:"report,omitempty"` // seconds between two lines of a card; 0 means BurnReport
	// Silence is how long the controller may say nothing until the load is stopped, seconds; 0 means that only the end of the
	// input stops it. The controller says an empty line now and then.
	Silence float64 `json:"silence,omitempty"`
}

// Defaults of a burn. A kernel is long enough for the clocks to be those of steady load, and short enough to stop at once and
// to stay under the watchdog of a card that drives a display (about 2 s).
const (
	BurnMemory = 0.85
	BurnKernel = 0.3
	BurnReport = 2.0
)

// burnLeast is the least memory of a card that a burn is worth, bytes.
const burnLeast = 64 << 20

// BurnLeast is the least free memory of a card for a burn, bytes.
func BurnLeast() uint64 { return burnLeast }

func (b *BurnRequest) check() error {
	switch {
	case b == nil:
		return errors.New("burn without its seconds")
	case b.Seconds <= 0 || b.Seconds > 23*3600:
		return fmt.Errorf("a burn of %g seconds: more than 0, and at most 23 hours", b.Seconds)
	case b.Memory < 0 || b.Memory > 0.95:
		return fmt.Errorf("a burn over a share of %g of the memory: at most 0.95", b.Memory)
	case b.Kernel < 0 || b.Kernel > 0.5:
		return fmt.Errorf("kernels of %g seconds: at most 0.5", b.Kernel)
	case b.Report < 0 || b.Silence < 0:
		return errors.New("a burn with a time below 0")
	}
	return nil
}

// Burn is what one card has done since the load began.
type Burn struct {
	Kernel    string  `json:"kernel"`    // mma80, mma75, fma
	Rounds    int64   `json:"rounds"`    // kernels whose results were compared with the first one's
	Different int64   `json:"different"` // 4-byte results that differed
	Bytes     int64   `json:"bytes"`     // of memory under check
	Passes    int64   `json:"passes"`    // over it, each written and compared
	Wrong     int64   `json:"wrong"`     // 4-byte words that came back wrong
	First     int64   `json:"first,omitempty"`
	Bits      uint32  `json:"bits,omitempty"`
	TFLOPS    float64 `json:"tflops"` // since the last line
	GBs       float64 `json:"gbs"`    // since the last line: bytes written and read
	Seconds   float64 `json:"seconds"`
}
