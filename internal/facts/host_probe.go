package facts

// NCCLRun is one all-reduce run by any engine.
type NCCLRun struct {
	Engine      string    `json:"engine"` // nccl-tests, native, torch
	Tool        string    `json:"tool,omitempty"`
	Library     string    `json:"library,omitempty"` // libnccl version
	Ranks       int       `json:"ranks"`
	Devices     []string  `json:"devices,omitempty"` // BDF or "[0x01] NAME" as printed
	Rows        []NCCLRow `json:"rows"`
	Wrong       int64     `json:"wrong"`           // values that differed; -1 when not checked
	Hung        bool      `json:"hung"`            // deadline passed, or a header without rows
	Phase       string    `json:"phase,omitempty"` // where it hung or failed
	Exit        int       `json:"exit"`
	Error       string    `json:"error,omitempty"`
	Transport   string    `json:"transport,omitempty"`    // worst edge: P2P, SHM, NET; "" unknown
	SingleRanks bool      `json:"single_ranks,omitempty"` // N independent one-rank jobs
	Layout      string    `json:"layout,omitempty"`       // single: one process; ranks: a process for each card; "" unknown
	NoP2P       bool      `json:"no_p2p,omitempty"`       // run with NCCL_P2P_DISABLE=1
	Key         string    `json:"key,omitempty"`          // of Error, where the engine tells errors apart
	Path        string    `json:"path,omitempty"`         // file of libnccl
	Wedged      bool      `json:"wedged,omitempty"`       // hung in the kernel: a reboot is needed
	Spread      float64   `json:"spread,omitempty"`       // (best − worst) ÷ best of the largest size
	Warnings    []string  `json:"warnings,omitempty"`     // WARN lines of NCCL's own log
	Busy        string    `json:"busy,omitempty"`         // not run: what keeps the cards busy
	Missing     string    `json:"missing,omitempty"`      // not run: why there is no engine
	Cut         string    `json:"cut,omitempty"`          // broken off before its end by something else than the cards: what was heard proves nothing more
	Source      string    `json:"source"`
}

// NCCLRow is one size. Bytes; time in microseconds; bandwidths in GB/s (10^9), best of in-place and out-of-place.
type NCCLRow struct {
	Bytes  int64   `json:"bytes"`
	TimeUS float64 `json:"time_us"`
	AlgBW  float64 `json:"algbw"`
	BusBW  float64 `json:"busbw"`
	Wrong  int64   `json:"wrong"`
}

// CardRate is one measured rate between host and card, GB/s (10^9 bytes), best and median of several.
type CardRate struct {
	BDF       string  `json:"bdf"`
	Direction string  `json:"direction"` // h2d, d2h, both
	Cards     int     `json:"cards"`     // that copied at the same time: 1, or all
	Bytes     int64   `json:"bytes"`     // of one copy
	Best      float64 `json:"best"`
	Median    float64 `json:"median"`
	Spread    float64 `json:"spread"`
	In        float64 `json:"in,omitempty"`  // of both: host to card
	Out       float64 `json:"out,omitempty"` // of both: card to host
	Source    string  `json:"source"`
}

// PeerCopy is one direction between two cards by one path, its bytes compared on arrival.
type PeerCopy struct {
	From   string  `json:"from"` // BDF
	To     string  `json:"to"`
	Path   string  `json:"path"`   // staged, p2p
	Result string  `json:"result"` // ok, absent, corrupt, hang, slow, error, not-tried
	Best   float64 `json:"best,omitempty"`
	Bytes  int64   `json:"bytes,omitempty"`
	Wrong  int64   `json:"wrong,omitempty"` // 4-byte words that arrived wrong
	Source string  `json:"source"`
}

// Helper is the stay of the native helper on the host.
type Helper struct {
	Ended   Fact[string] `json:"ended,omitzero"`  // exit, killed, wedged, cut, never
	Phase   Fact[string] `json:"phase,omitzero"`  // where it stuck or failed first
	Reason  Fact[string] `json:"reason,omitzero"` // why it gave no figures
	Key     Fact[string] `json:"key,omitzero"`    // of the reason
	Place   Fact[string] `json:"place,omitzero"`  // directory that it ran from
	PushMS  Fact[int64]  `json:"push,omitzero" unit:"ms"`
	Library Fact[string] `json:"libcuda,omitzero"` // libcuda as loaded
}
