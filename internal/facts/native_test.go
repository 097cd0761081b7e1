package facts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// talked makes a snapshot of a conversation with the helper.
func talked(lines ...string) *Host {
	return FromSnapshot(snapshotOf(ProbeNativePath, strings.Join(lines, "\n")+"\n"))
}

const (
	askedHello = `{"request":{"command":"hello"}}`
	hello      = `{"phase":"devices","state":"result","t":1,"hello":{"protocol":1,"arch":"amd64","devices":[{"ordinal":0,"name":"NVIDIA GeForce RTX 4090","bdf":"0000:41:00.0","compute_mode":0,"capability":"8.9"},{"ordinal":1,"name":"NVIDIA GeForce RTX 4090","bdf":"0000:61:00.0","compute_mode":0,"capability":"8.9"}]}}`
	done       = `{"phase":"done","state":"end","t":2,"outcome":"ok"}`
	askedRun   = `{"request":{"command":"all-reduce","all_reduce":{"layout":"single"}}}`
	nccl       = `{"phase":"load-nccl","state":"end","t":1,"library":{"name":"libnccl","path":"/opt/venv/libnccl.so.2","version":"2.22.3"}}`
	begun      = `{"phase":"nccl-first","state":"begin","t":1,"limit":45}`
	ended      = `{"ended":{"how":"exit","code":0,"place":"/dev/shm/preflight.x","push_ms":40}}`
)

func TestConversationBecomesFacts(t *testing.T) {
	h := talked(askedHello, hello, done,
		`{"request":{"command":"links"}}`,
		`{"phase":"link-alone","state":"result","t":1,"card":1,"bandwidth":{"direction":"h2d","bytes":67108864,"cards":1,"best":24.5,"median":24.1,"worst":23,"spread":0.06}}`, done,
		`{"request":{"command":"peers"}}`,
		`{"phase":"peer-p2p","state":"result","t":1,"card":0,"peer":1,"pair":{"path":"p2p","result":"corrupt","bytes":8388608,"wrong":12}}`, done,
		askedRun, nccl,
		`{"phase":"nccl-measure","state":"result","t":1,"all_reduce":{"layout":"single","ranks":2,"bytes":67108864,"time_us":5000,"algbw":13.4,"busbw":13.4,"wrong":0}}`,
		`{"phase":"nccl-log","state":"result","t":1,"log":{"transport":"SHM","started":2,"complete":2}}`, done, ended)
	want := []CardRate{{BDF: "0000:61:00.0", Direction: "h2d", Cards: 1, Bytes: 67108864, Best: 24.5, Median: 24.1, Spread: 0.06, Source: nativeSource}}
	if d := cmp.Diff(want, h.Rates); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]PeerCopy{{From: "0000:41:00.0", To: "0000:61:00.0", Path: "p2p", Result: "corrupt", Bytes: 8388608, Wrong: 12, Source: nativeSource}}, h.Copies); d != "" {
		t.Error(d)
	}
	runs := []NCCLRun{{
		Engine: "native", Layout: "single", Library: "2.22.3", Path: "/opt/venv/libnccl.so.2", Ranks: 2, Transport: "SHM", Source: nativeSource,
		Rows: []NCCLRow{{Bytes: 67108864, TimeUS: 5000, AlgBW: 13.4, BusBW: 13.4}},
	}}
	if d := cmp.Diff(runs, h.NCCL); d != "" {
		t.Error(d)
	}
	if h.Helper.Ended.Value != "exit" || h.Helper.PushMS.Value != 40 {
		t.Errorf("%+v", h.Helper)
	}
}

func TestConversationsThatBreakOff(t *testing.T) {
	for _, row := range []struct {
		name        string
		lines       []string
		hung        bool
		phase, text string
		wedged      bool
		reason      string // of the helper as a whole
	}{
		{"a phase passed its limit", []string{begun, `{"phase":"nccl-first","state":"timeout","t":46}`, `{"phase":"done","state":"end","t":47,"outcome":"timeout"}`}, true, "nccl-first", "", false, ""},
		{"killed by the shell past its limit", []string{begun, `{"ended":{"how":"killed","code":0}}`}, true, "nccl-first", "", false, ""},
		{"killed after a first size", []string{`{"phase":"nccl-measure","state":"result","t":1,"all_reduce":{"layout":"single","ranks":2,"bytes":67108864,"time_us":5000,"algbw":13.4,"busbw":13.4,"wrong":0}}`, begun, `{"ended":{"how":"killed","code":0}}`}, true, "nccl-first", "", false, ""},
		{"its alarm went off", []string{begun, `{"ended":{"how":"exit","code":142}}`}, true, "nccl-first", "", false, ""},
		{"cut after a hang was told", []string{begun, `{"phase":"nccl-first","state":"timeout","t":46}`, `{"ended":{"how":"cut","code":0,"why":"reset"}}`}, true, "nccl-first", "", false, ""},
		{"stuck in the kernel", []string{begun, `{"phase":"nccl-first","state":"timeout","t":46}`, `{"phase":"done","state":"end","t":47,"outcome":"wedged"}`}, true, "nccl-first", "", true, ""},
		{"an error", []string{`{"phase":"nccl-init","state":"error","t":1,"error":{"key":"nccl-cuda","call":"ncclCommInitAll","code":1,"text":"unhandled cuda error","last":"Cuda failure 2"}}`, done}, false, "nccl-init", "ncclCommInitAll: unhandled cuda error (1): Cuda failure 2", false, ""},
		{"no libnccl is no fault of the cards", []string{`{"phase":"load-nccl","state":"error","t":1,"error":{"key":"no-libnccl","text":"no libnccl.so.2 was found"}}`, done}, false, "", "", false, "no libnccl.so.2 was found"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := talked(append([]string{askedHello, hello, done, askedRun}, row.lines...)...)
			if row.reason != "" {
				if len(h.NCCL) != 0 || h.Helper.Reason.Value != row.reason {
					t.Errorf("%+v, %+v", h.NCCL, h.Helper)
				}
				return
			}
			if len(h.NCCL) != 1 {
				t.Fatalf("%+v", h.NCCL)
			}
			if r := h.NCCL[0]; r.Hung != row.hung || r.Phase != row.phase || r.Error != row.text || r.Wedged != row.wedged {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A size is told by every process; the slowest counts, and wrong sums of all add up.
func TestRanksAreJoined(t *testing.T) {
	row := func(rank, busbw, wrong string) string {
		return `{"phase":"nccl-measure","state":"result","t":1,"rank":` + rank + `,"all_reduce":{"layout":"ranks","ranks":2,"bytes":1048576,"time_us":1,"algbw":1,"busbw":` + busbw + `,"wrong":` + wrong + `}}`
	}
	h := talked(`{"request":{"command":"all-reduce","env":{"NCCL_P2P_DISABLE":"1"},"all_reduce":{"layout":"ranks"}}}`, row("0", "12", "0"), row("1", "11", "3"), done)
	if len(h.NCCL) != 1 || len(h.NCCL[0].Rows) != 1 || h.NCCL[0].Rows[0].BusBW != 11 || h.NCCL[0].Wrong != 3 || !h.NCCL[0].NoP2P || h.NCCL[0].Layout != "ranks" {
		t.Errorf("%+v", h.NCCL)
	}
}

// What was broken off by something else than the cards is no hang: neither a dead network nor a killed helper.
func TestConversationsThatAreCut(t *testing.T) {
	row := `{"phase":"nccl-measure","state":"result","t":1,"all_reduce":{"layout":"single","ranks":2,"bytes":1048576,"time_us":5000,"algbw":13.4,"busbw":13.4,"wrong":0}}`
	for _, c := range []struct {
		name  string
		lines []string
		cut   string
	}{
		{"nothing more was heard", []string{begun}, "nothing more was heard"},
		{"before a phase began", nil, "nothing more was heard"},
		{"the network died", []string{begun, `{"ended":{"how":"cut","code":0,"why":"the connection was cut while the script ran"}}`}, "the connection was cut while the script ran"},
		{"between two sizes", []string{row, `{"ended":{"how":"cut","code":0,"why":"x"}}`}, "x"},
		{"the helper was killed for memory", []string{begun, `{"ended":{"how":"exit","code":137}}`}, "the helper ended with 137"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := talked(append([]string{askedHello, hello, done, askedRun}, c.lines...)...)
			if len(h.NCCL) != 1 || h.NCCL[0].Hung || h.NCCL[0].Error != "" || h.NCCL[0].Cut != c.cut {
				t.Errorf("%+v", h.NCCL)
			}
		})
	}
	if h := talked(askedHello, hello, done, askedRun, row, done, `{"ended":{"how":"cut","code":0,"why":"x"}}`); len(h.NCCL) != 1 || h.NCCL[0].Cut != "" {
		t.Errorf("a run that was answered to its end is not cut: %+v", h.NCCL)
	}
}

// Figures that nothing can have, and lines that are longer than any, are left out; what comes after them counts.
func TestAbsurdLinesAreLeftOut(t *testing.T) {
	rate := func(words string) string {
		return `{"phase":"link-alone","state":"result","t":1,"card":0,"bandwidth":{` + words + `}}`
	}
	reduced := func(words string) string {
		return `{"phase":"nccl-measure","state":"result","t":1,"all_reduce":{"layout":"single","time_us":1,"algbw":1,` + words + `}}`
	}
	h := talked(
		askedHello, hello, done, strings.Repeat("x", 2<<20),
		rate(`"direction":"h2d","bytes":-5,"cards":1,"best":25,"median":25`), rate(`"direction":"sideways","bytes":5,"cards":1,"best":25,"median":25`),
		rate(`"direction":"h2d","bytes":5,"cards":0,"best":25,"median":25`), rate(`"direction":"h2d","bytes":5,"cards":1,"best":-25,"median":25`),
		rate(`"direction":"both","bytes":5,"cards":1,"best":25,"median":25,"in":-1`),
		`{"phase":"peer-p2p","state":"result","t":1,"card":0,"peer":1,"pair":{"path":"p2p","result":"ok","best":-1}}`,
		`{"phase":"peer-p2p","state":"result","t":1,"card":0,"peer":0,"pair":{"path":"p2p","result":"ok","best":1}}`,
		askedRun, reduced(`"ranks":2,"bytes":4,"busbw":1,"wrong":5`), reduced(`"ranks":2,"bytes":4,"busbw":1,"wrong":-5`), reduced(`"ranks":0,"bytes":8,"busbw":1,"wrong":0`), done, ended)
	if len(h.Rates) != 0 || len(h.Copies) != 0 || len(h.NCCL) != 1 || len(h.NCCL[0].Rows) != 1 || h.NCCL[0].Wrong != 5 || h.Helper.Ended.Value != "exit" {
		t.Errorf("%+v\n%+v\n%+v\n%+v", h.Rates, h.Copies, h.NCCL, h.Helper)
	}
}

func FuzzConversation(f *testing.F) {
	f.Add(strings.Join([]string{askedHello, hello, done, askedRun, nccl, begun, ended}, "\n"))
	f.Add(`{"phase":"x","card":9999999,"bandwidth":{"best":1e300}}`)
	f.Fuzz(func(t *testing.T, text string) {
		h := FromSnapshot(snapshotOf(ProbeNativePath, text))
		for _, r := range h.Rates {
			if r.Best < 0 || r.Best > 1e6 {
				t.Errorf("%+v", r)
			}
		}
	})
}
