package facts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"preflight/internal/probe/wire"
)

// ProbeNativePath holds the conversation with the native helper, one [wire.Entry] a line, as it was heard.
const ProbeNativePath = "probe/native.jsonl"

const nativeSource = "probe:native"

// nativeLines bounds what is read of a conversation, nativeLine one line of it in bytes.
const (
	nativeLines = 100_000
	nativeLine  = 1 << 20
)

// nativeReader goes through a conversation once.
type nativeReader struct {
	b       *builder
	request wire.Request
	bdf     map[int]string // CUDA ordinal -> address
	library wire.Library   // libnccl as loaded last
	open    string         // the phase that has begun and not ended
	run     *NCCLRun       // the all-reduce that is going on
	done    bool           // the request was answered to its end
}

// readNative takes rates, copies between cards and all-reduces from the helper's own words. A line that is not its
// language, or longer than any that it says, is left out: the conversation may have been cut anywhere.
func readNative(b *builder) {
	raw, ok := b.snap.Files[ProbeNativePath]
	if !ok {
		return
	}
	r := nativeReader{b: b, bdf: map[int]string{}}
	n := 0
	for line := range bytes.Lines(raw) {
		var e wire.Entry
		if len(line) > nativeLine || json.Unmarshal(line, &e) != nil {
			continue
		}
		if n++; n > nativeLines && e.Ended == nil {
			continue // how it ended still counts
		}
		switch {
		case e.Request != nil:
			r.closeRun()
			r.begin(*e.Request)
		case e.Ended != nil:
			r.ended(*e.Ended)
		default:
			r.line(e.Line)
		}
	}
	r.closeRun()
}

func (r *nativeReader) begin(q wire.Request) {
	r.request, r.open, r.done = q, "", false
	if q.Command != wire.CommandAllReduce && q.Command != wire.CommandAcross {
		return
	}
	run := &NCCLRun{Engine: "native", Wrong: -1, Source: nativeSource, NoP2P: q.Env["NCCL_P2P_DISABLE"] == "1", Layout: wire.LayoutSingle}
	if q.AllReduce != nil && q.AllReduce.Layout != "" {
		run.Layout = q.AllReduce.Layout
	}
	r.run = run
}

// closeRun ends an all-reduce. One whose last line never came was broken off: why is what ended tells, and only a
// deadline that passed makes it a hang.
func (r *nativeReader) closeRun() {
	if r.run == nil {
		return
	}
	run := *r.run
	r.run = nil
	if wire.Lacking(run.Key) { // no library to run with: another engine's turn, and no fault of the cards
		h := &r.b.host.Helper
		if !h.Reason.Known() {
			h.Phase, h.Reason, h.Key = Of(run.Phase, nativeSource), Of(run.Error, nativeSource), Of(run.Key, nativeSource)
		}
		return
	}
	if !r.done && !run.Hung && run.Error == "" && run.Cut == "" {
		run.Cut = "nothing more was heard"
	}
	if run.Cut != "" {
		run.Phase = firstNonEmpty(run.Phase, r.open)
	}
	run.Library, run.Path = firstNonEmpty(run.Library, r.library.Version), firstNonEmpty(r.library.Real, r.library.Path)
	if len(run.Rows) > 0 || run.Hung || run.Error != "" || run.Cut != "" {
		r.b.host.NCCL = append(r.b.host.NCCL, run)
	}
}

func (r *nativeReader) line(l wire.Line) {
	switch l.State {
	case wire.StateBegin:
		r.open = l.Phase
	case wire.StateEnd, wire.StateError, wire.StateTimeout, wire.StateCut:
		if r.open == l.Phase {
			r.open = ""
		}
	}
	switch {
	case l.Hello != nil:
		r.hello(*l.Hello)
	case l.Library != nil:
		r.loaded(*l.Library)
	case l.Bandwidth != nil && l.Card != nil:
		r.rate(*l.Card, *l.Bandwidth)
	case l.Pair != nil && l.Card != nil && l.Peer != nil:
		r.pair(*l.Card, *l.Peer, *l.Pair)
	case l.AllReduce != nil && r.run != nil:
		r.row(*l.AllReduce)
	case l.Log != nil && r.run != nil:
		r.log(*l.Log)
	}
	if l.State == wire.StateTimeout || l.State == wire.StateError && l.Error != nil {
		r.trouble(l)
	}
	if l.Phase == wire.PhaseDone {
		r.done = true
		if r.run != nil && l.Outcome == wire.OutcomeWedged {
			r.run.Wedged = true
		}
	}
}

// trouble notes the first error or hang, of the run and of the helper as a whole.
func (r *nativeReader) trouble(l wire.Line) {
	h := &r.b.host.Helper
	text, key := "a phase did not end in time", wire.KeyHang
	if l.Error != nil {
		text, key = l.Error.Error(), l.Error.Key
		if l.Error.Last != "" {
			text += ": " + l.Error.Last
		}
	}
	if r.run != nil {
		if !r.run.Hung && r.run.Error == "" {
			r.run.Hung = l.State == wire.StateTimeout || key == wire.KeyHang || key == wire.KeyWedged
			r.run.Phase, r.run.Key = l.Phase, key
			if !r.run.Hung {
				r.run.Error = text
			}
			r.run.Wedged = r.run.Wedged || key == wire.KeyWedged
		}
		return
	}
	if !h.Reason.Known() {
		h.Phase, h.Reason, h.Key = Of(l.Phase, nativeSource), Of(text, nativeSource), Of(key, nativeSource)
	}
}

func (r *nativeReader) hello(h wire.Hello) {
	for _, d := range h.Devices {
		r.bdf[d.Ordinal] = smiBDF(d.BDF)
	}
}

func (r *nativeReader) loaded(l wire.Library) {
	switch {
	case strings.Contains(l.Name, "nccl"):
		r.library = l
	case l.Version != "":
		r.b.host.Helper.Library = Of(firstNonEmpty(l.Real, l.Path)+" (CUDA "+l.Version+")", nativeSource)
	}
}

// name is a card's address; a card that hello did not name keeps its number.
func (r *nativeReader) name(ordinal int) string {
	return firstNonEmpty(r.bdf[ordinal], fmt.Sprintf("cuda%d", ordinal))
}

func (r *nativeReader) rate(card int, w wire.Bandwidth) {
	if !sane(w.Best, w.Median, w.In, w.Out, w.Spread) || w.Bytes <= 0 || w.Cards < 1 || !directions[w.Direction] {
		return
	}
	r.b.host.Rates = append(r.b.host.Rates, CardRate{
		BDF: r.name(card), Direction: w.Direction, Cards: w.Cards, Bytes: w.Bytes, Best: w.Best, Median: w.Median, Spread: w.Spread, In: w.In, Out: w.Out, Source: nativeSource,
	})
}

// directions of a copy between host and card.
var directions = map[string]bool{wire.HostToCard: true, wire.CardToHost: true, wire.BothWays: true}

func (r *nativeReader) pair(a, b int, p wire.Pair) {
	if !sane(p.Best, p.Median) || p.Wrong < 0 || p.Bytes < 0 || a == b {
		return
	}
	r.b.host.Copies = append(r.b.host.Copies, PeerCopy{From: r.name(a), To: r.name(b), Path: p.Path, Result: p.Result, Best: p.Best, Bytes: p.Bytes, Wrong: p.Wrong, Source: nativeSource})
}

// row is one size; every process of a run tells the same size, and the slowest of them counts.
func (r *nativeReader) row(a wire.AllReduce) {
	if !sane(a.BusBW, a.AlgBW) || a.BusBW <= 0 || a.Wrong < 0 || a.Bytes <= 0 || a.Ranks < 1 {
		return
	}
	run := r.run
	run.Ranks = max(run.Ranks, a.Ranks)
	run.Wrong = max(run.Wrong, 0) + a.Wrong
	run.Spread = a.Spread
	row := NCCLRow{Bytes: a.Bytes, TimeUS: a.TimeUS, AlgBW: a.AlgBW, BusBW: a.BusBW, Wrong: a.Wrong}
	for i := range run.Rows {
		if old := &run.Rows[i]; old.Bytes == a.Bytes {
			wrong := old.Wrong + a.Wrong
			if a.BusBW < old.BusBW {
				*old = row
			}
			old.Wrong = wrong
			return
		}
	}
	run.Rows = append(run.Rows, row)
}

func (r *nativeReader) log(l wire.NCCLLog) {
	r.run.Library = firstNonEmpty(l.Version, r.run.Library)
	r.run.Transport = firstNonEmpty(l.Transport, r.run.Transport)
	r.run.Warnings = append(r.run.Warnings, l.Warnings...)
	if r.run.Hung && r.run.Phase == "" && l.Started > l.Complete {
		r.run.Phase = wire.PhaseNCCLInit
	}
}

func (r *nativeReader) ended(e wire.Ended) {
	h := &r.b.host.Helper
	h.Ended = Of(e.How, nativeSource)
	if e.Place != "" {
		h.Place, h.PushMS = Of(e.Place, nativeSource), Of(e.PushMS, nativeSource)
	}
	if e.Why != "" && !h.Reason.Known() {
		h.Reason = Of(e.Why, nativeSource)
	}
	if r.run == nil || r.done && e.How != wire.EndedWedged {
		return
	}
	switch {
	case e.How == wire.EndedWedged:
		r.run.Hung, r.run.Wedged = true, true
	case r.run.Hung, r.run.Error != "": // seen before the end
	case e.How == wire.EndedKilled, e.How == wire.EndedExit && e.Code == exitAlarm:
		r.run.Hung = true
	case e.How == wire.EndedExit:
		r.run.Cut = fmt.Sprintf("the helper ended with %d", e.Code)
	default:
		r.run.Cut = firstNonEmpty(e.Why, "nothing more was heard")
	}
	r.run.Phase = firstNonEmpty(r.run.Phase, r.open)
}

// exitAlarm is the shell's status of a helper whose alarm went off (128 + SIGALRM): not even its own watchdog ran.
const exitAlarm = 128 + 14

// sane refuses figures that no link has.
func sane(gbs ...float64) bool {
	for _, v := range gbs {
		if v < 0 || v >= 1e5 {
			return false
		}
	}
	return true
}
