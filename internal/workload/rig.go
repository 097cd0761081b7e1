package workload

// Rig is a machine in the few figures that the arithmetic needs.
type Rig struct {
	Names     []string    `json:"names"` // of rigs that are the same in all of this
	Cards     int         `json:"cards"`
	Card      Card        `json:"card"`
	P2P       bool        `json:"p2p"`       // cards reach each other's memory
	NVLink    bool        `json:"nvlink"`    // by NVLink
	Bandwidth []Bandwidth `json:"bandwidth"` // by number of cards, ascending
	Price     *Price      `json:"price,omitempty"`
	Buy       float64     `json:"buy,omitempty"` // price of the whole machine
	Policy    Policy      `json:"policy"`
	Launch    Surround    `json:"-"`
	Reference bool        `json:"reference,omitempty"` // a machine of the catalogue to compare with
	Described bool        `json:"described,omitempty"` // its name says no more than cards and model
}

// Card is one of the cards.
type Card struct {
	Name      string  `json:"name"`
	Slug      string  `json:"slug,omitempty"`
	Memory    float64 `json:"memory_bytes"`                // bytes, as the driver shows them
	TFLOPS    float64 `json:"fp16_dense_tflops,omitempty"` // with 32-bit accumulation, no sparsity; 0: unknown
	MemoryGBs float64 `json:"memory_gb_s,omitempty"`       // 10^9 bytes a second; 0: unknown
	Watts     float64 `json:"tdp_w,omitempty"`             // default limit
	Source    string  `json:"source,omitempty"`            // of these figures
	Measured  float64 `json:"tokens_per_second,omitempty"` // of one card, on this workload; 0: not measured
	MoreCards []Rate  `json:"measured_by_cards,omitempty"` // throughput of several, as it was measured
}

// Rate is a measured throughput of so many cards together, tokens a second.
type Rate struct {
	Cards           int     `json:"cards"`
	TokensPerSecond float64 `json:"tokens_per_second"`
}

// Bandwidth is the bus bandwidth of an all-reduce over so many cards (nccl-tests' busbw), GB/s (10^9 bytes).
type Bandwidth struct {
	Cards    int     `json:"cards"`
	GBs      float64 `json:"gb_s"`
	Measured bool    `json:"measured"`
	Why      string  `json:"why"`
}

// bus is the bandwidth for n cards: the entry of the fewest cards that has n, else the last. Bus bandwidth is meant to
// depend on the slowest link and not on the number of cards (nccl-tests, doc/PERFORMANCE.md).
func (r Rig) bus(n int) (Bandwidth, bool) {
	for _, b := range r.Bandwidth {
		if b.Cards >= n && b.GBs > 0 {
			return b, true
		}
	}
	if k := len(r.Bandwidth); k > 0 && r.Bandwidth[k-1].GBs > 0 {
		return r.Bandwidth[k-1], true
	}
	return Bandwidth{}, false
}

// Price is what an hour costs, in the user's own currency.
type Price struct {
	PerCard float64 `json:"per_card_hour"`
	Origin  string  `json:"origin"` // who said it: "--price", "price_per_hour of the rig ÷ 8 cards"
}

// Surround is what the launch line depends on beyond the job itself.
type Surround struct {
	Env       []Setting // variables that this rig's findings call for
	Busy      []int     // TCP ports that are taken
	PortsSeen bool
	Container bool
}

// Setting is a variable of the environment and the reason for it.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// Policy is every judgement of fit. A profile sets it.
type Policy struct {
	Margin     float64 `json:"margin"`     // share of a card's memory that fragmentation may take
	Busy       float64 `json:"busy"`       // share of a card's peak that a training reaches
	Overlap    float64 `json:"overlap"`    // share of a micro-step's computing that hides communication
	Efficiency float64 `json:"efficiency"` // scaling efficiency from which a rig is suited; 0: by the number of cards
	Below      float64 `json:"below"`      // so much less is communication-bound, less than that not suited
}

// DefaultPolicy is the built-in one. Overlap: the backward pass is two thirds of a step, and gradients are sent while it
// runs (Li 2020, PyTorch Distributed: arXiv 2006.15704, §3.2). Busy: 0.44–0.52 on A100 clusters (Narayanan 2021, arXiv
// 2104.04473, table 1), 0.46 for PaLM (arXiv 2204.02311, table 3); less on a desk. The rest is this project's.
func DefaultPolicy() Policy {
	return Policy{Margin: 0.05, Busy: 0.40, Overlap: 0.60, Below: 0.15}
}

// suitedFrom is the efficiency that a compute-heavy job with well-filled cards should reach on so many cards.
func (p Policy) suitedFrom(n int) float64 {
	switch {
	case p.Efficiency > 0:
		return p.Efficiency
	case n <= 2:
		return 0.85
	case n <= 4:
		return 0.75
	}
	return 0.65
}
