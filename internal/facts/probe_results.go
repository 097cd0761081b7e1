package facts

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"
)

// Probe results lie in the snapshot, so that a run is judged alike live and from the archive.
const (
	ProbeNCCLPath  = "probe/nccl.json"           // []NCCLRun
	ProbeLinksPath = "probe/links.json"          // []LinkSample
	ProbeTextPath  = "probe/all_reduce_perf.txt" // output of nccl-tests as it was printed
	ProbeDebugPath = "probe/nccl-debug.txt"      // NCCL's own log
)

func readNCCL(b *builder) {
	if raw, ok := b.read(ProbeNCCLPath); ok {
		var runs []NCCLRun
		if err := json.Unmarshal(raw, &runs); err != nil {
			b.gap(KindNCCL, "%s could not be read: %v", ProbeNCCLPath, err)
		}
		b.host.NCCL = append(b.host.NCCL, runs...)
	} else if raw, ok := b.read(ProbeTextPath); ok {
		b.host.NCCL = []NCCLRun{ParseNCCLTests(string(raw), "file:all_reduce_perf.txt")}
	}
	if raw, ok := b.read(ProbeDebugPath); ok {
		if len(b.host.NCCL) == 0 {
			b.host.NCCL = []NCCLRun{ParseNCCLTests(string(raw), "file:nccl-debug.txt")}
		}
		b.applyDebug(ParseNCCLDebug(string(raw)))
	}
	for i := range b.host.NCCL {
		b.host.NCCL[i].Source = firstNonEmpty(b.host.NCCL[i].Source, "file:"+ProbeNCCLPath)
	}
	if len(b.host.NCCL) == 0 {
		b.gap(KindNCCL, "no all-reduce was run")
	}
}

// applyDebug adds to the runs what only NCCL's log tells.
func (b *builder) applyDebug(d NCCLDebug) {
	for i := range b.host.NCCL {
		r := &b.host.NCCL[i]
		r.Transport = firstNonEmpty(r.Transport, d.Transport)
		r.Library = firstNonEmpty(r.Library, d.Library)
		if r.Hung && r.Phase == "" && d.Started > d.Complete {
			r.Phase = "init"
		}
		if r.Error == "" && len(r.Rows) == 0 {
			r.Error = d.FirstWarn
		}
	}
}

func readLoad(b *builder) {
	if raw, ok := b.read(ProbeLinksPath); ok {
		if err := json.Unmarshal(raw, &b.host.Load); err != nil {
			b.gap(KindLinkSample, "%s could not be read: %v", ProbeLinksPath, err)
			b.host.Load = nil
		}
	}
	for i := range b.host.Load {
		b.host.Load[i].Source = firstNonEmpty(b.host.Load[i].Source, "file:"+ProbeLinksPath)
	}
	if len(b.host.Load) == 0 {
		b.gap(KindLinkSample, "no probe ran while links were sampled")
	}
}

// readSamples reads the short series of `nvidia-smi --query-gpu=index,pci.bus_id,pstate,pcie.link.gen.gpucurrent,
// pcie.link.width.current,utilization.gpu`. Some cards narrow their link when idle, so the widest counts; the lowest
// utilisation counts, since a single busy sample says little.
func readSamples(b *builder) {
	raw, ok := b.read("cmd/gpu-samples.csv")
	if !ok {
		return
	}
	type best struct{ width, util int }
	seen := map[string]*best{}
	for _, line := range strings.Split(string(raw), "\n") {
		f := strings.Split(line, ",")
		if len(f) < 6 {
			continue
		}
		width, err1 := strconv.Atoi(strings.TrimSpace(f[4]))
		util, err2 := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(f[5]), "%")))
		if err1 != nil {
			continue
		}
		s := seen[smiBDF(f[1])]
		if s == nil {
			s = &best{util: 100}
			seen[smiBDF(f[1])] = s
		}
		s.width = max(s.width, width)
		if err2 == nil {
			s.util = min(s.util, util)
		}
	}
	for bdf, s := range seen {
		c := b.card(bdf)
		if c == nil {
			continue
		}
		if s.width > c.Link.Width.Value {
			c.Link.Width = Of(s.width, "cmd:nvidia-smi --query-gpu=pcie.link.width.current")
		}
		c.MinUtil = Of(s.util, "cmd:nvidia-smi --query-gpu=utilization.gpu")
	}
}

// SortSamples puts link samples into a stable order.
func SortSamples(s []LinkSample) {
	sort.Slice(s, func(i, j int) bool { return s[i].BDF < s[j].BDF })
}
