package facts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"preflight/internal/sample"
)

// ProbeBurnInPath holds a [BurnIn].
const ProbeBurnInPath = "probe/burn-in.json"

// BurnIn is one run of load on all cards of a host at once, with what was sampled before, during and after it. Times are seconds
// since the series' first sample.
type BurnIn struct {
	Quick    bool           `json:"quick,omitempty"`    // minutes: finds what a step of power breaks, proves nothing about heat soak
	Asked    float64        `json:"asked"`              // s of load that were asked for
	Begin    float64        `json:"begin"`              // when all cards were put under load; what is before it is the cool baseline
	End      float64        `json:"end"`                // when the load ended; what is after it is the cool-down
	Ended    string         `json:"ended"`              // one of the Burn… words
	Text     string         `json:"text,omitempty"`     // why, in words of the helper, the driver or the connection
	Key      string         `json:"key,omitempty"`      // of an error: wire.Key…
	After    string         `json:"after,omitempty"`    // of a host that went silent: what was found later, one of the After… words
	Abort    float64        `json:"abort,omitempty"`    // °C of a core at which the load would have been stopped
	Baseline float64        `json:"baseline,omitempty"` // °C: the hottest card before the load
	Cards    []BurnInCard   `json:"cards,omitempty"`
	Caps     []CapStep      `json:"caps,omitempty"`     // of a power cap sweep, in the order in which they were tried
	Advice   float64        `json:"advice,omitempty"`   // W: the cap that the sweep recommends; 0 none
	Restored string         `json:"restored,omitempty"` // of a sweep: "" when every limit is back as it was, else what is not
	Series   *sample.Series `json:"series,omitempty"`   // nil when nothing was sampled
	Source   string         `json:"source"`
}

// Ways in which a burn-in ends.
const (
	BurnDone     = "done"      // the asked time passed
	BurnStopped  = "stopped"   // somebody stopped it
	BurnHot      = "too-hot"   // a card reached the abort temperature
	BurnXid      = "xid"       // the kernel said that a card fell off the bus (Xid 79)
	BurnLostCard = "lost-card" // a card does not answer any more
	BurnLostHost = "lost-host" // the host went silent under load
	BurnBlind    = "blind"     // the cards could not be sampled any more: load is not left unwatched
	BurnHang     = "hang"      // a kernel did not end in time
	BurnError    = "error"     // the driver refused
	BurnBusy     = "busy"      // not run: cards are at work
	BurnMissing  = "missing"   // not run: the host lacks what it takes
)

// What became of a host that went silent under load.
const (
	AfterRebooted = "rebooted"  // it answers again, and was started anew meanwhile
	AfterSameBoot = "same-boot" // it answers again and had never stopped: the network did
	AfterSilent   = "silent"    // it does not answer
)

// Ran says whether there was any load.
func (b *BurnIn) Ran() bool { return b.End > b.Begin }

// BurnInCard is what one card computed.
type BurnInCard struct {
	BDF       string  `json:"bdf"`
	Kernel    string  `json:"kernel,omitempty"` // mma80, mma75, fma
	Rounds    int64   `json:"rounds"`           // kernels whose results were compared with the first one's, bit by bit
	Different int64   `json:"different"`        // 4-byte results that differed
	Bytes     int64   `json:"bytes"`            // of memory under pattern check
	Passes    int64   `json:"passes"`           // over those bytes, each written and compared
	Wrong     int64   `json:"wrong"`            // 4-byte words that came back wrong
	First     int64   `json:"first,omitempty"`  // byte offset of the first of them in the checked memory
	Bits      uint32  `json:"bits,omitempty"`   // that were wrong in any of them
	TFLOPS    float64 `json:"tflops,omitempty"` // of the last report, 10^12 multiply-adds × 2 a second
	GBs       float64 `json:"gbs,omitempty"`    // memory traffic of the last report, GB/s (10^9)
	Error     string  `json:"error,omitempty"`
	Key       string  `json:"key,omitempty"` // of Error
}

// CapStep is one power cap of a sweep, held on all cards. Speed is the sum of the cards' arithmetic over the time after the
// clocks settled; temperatures are the hottest of all samples of the step.
type CapStep struct {
	Watts   float64 `json:"watts"`
	Seconds float64 `json:"seconds"`
	TFLOPS  float64 `json:"tflops"`
	Speed   float64 `json:"speed"`             // share of the uncapped step's
	Drawn   float64 `json:"drawn,omitempty"`   // W, all cards together, mean
	Hottest float64 `json:"hottest,omitempty"` // °C
}

// readBurnIn takes a burn-in from its file.
func readBurnIn(b *builder) {
	raw, ok := b.read(ProbeBurnInPath)
	if !ok {
		b.gap(KindBurnIn, "no burn-in was run")
		return
	}
	var burn BurnIn
	err := json.Unmarshal(raw, &burn)
	if err == nil {
		err = burn.possible()
	}
	if err != nil {
		b.gap(KindBurnIn, "%s could not be read: %v", ProbeBurnInPath, err)
		return
	}
	burn.Text, burn.Restored = clipped(burn.Text), clipped(burn.Restored)
	burn.Source = firstNonEmpty(burn.Source, "file:"+ProbeBurnInPath)
	b.host.BurnIn = &burn
}

// longestBurnIn is more than any burn-in takes, s: twelve hours may be asked for, and the cards cool before and after.
const longestBurnIn = 24 * 3600

// waysToEnd are all the Burn… words.
var waysToEnd = []string{BurnDone, BurnStopped, BurnHot, BurnXid, BurnLostCard, BurnLostHost, BurnBlind, BurnHang, BurnError, BurnBusy, BurnMissing}

// possible refuses what no burn-in can have written, so that a spoilt file is judged neither well nor ill.
func (b *BurnIn) possible() error {
	if !slices.Contains(waysToEnd, b.Ended) {
		return fmt.Errorf("a burn-in does not end as %.40q", b.Ended)
	}
	if b.Begin < 0 || b.End < 0 || b.End > longestBurnIn || b.Begin > longestBurnIn {
		return fmt.Errorf("a load from %g s to %g s is not possible", b.Begin, b.End)
	}
	seen := map[string]bool{}
	for _, c := range b.Cards {
		if seen[c.BDF] {
			return fmt.Errorf("card %.40q is there twice", c.BDF)
		}
		seen[c.BDF] = true
		if min(c.Rounds, c.Different, c.Bytes, c.Passes, c.Wrong, c.First) < 0 || c.TFLOPS < 0 || c.GBs < 0 {
			return fmt.Errorf("card %.40q counts below zero", c.BDF)
		}
	}
	return nil
}

// clipped bounds a saved text.
func clipped(s string) string {
	const most = 600
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
