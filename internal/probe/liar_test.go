package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
)

// liar is a host whose shell and helper say what a test wants, over a pipe in memory.
type liar struct {
	script func(nonce string, in io.Reader, out io.Writer)
	ended  error // what the connection tells at the end
}

func (l liar) RunScript(context.Context, []byte, io.Writer) error {
	return errors.New("no scripts here")
}

func (l liar) Talk(ctx context.Context, script []byte, talk func(in io.WriteCloser, out io.Reader) error) error {
	_, rest, _ := strings.Cut(string(script), "N='")
	nonce, _, _ := strings.Cut(rest, "'")
	toHost, in := io.Pipe()
	out, fromHost := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = toHost.Close(); _ = fromHost.CloseWithError(ctx.Err()) })
	defer stop()
	go func() {
		l.script(nonce, toHost, fromHost)
		_ = toHost.Close()
		_ = fromHost.Close()
	}()
	err := talk(in, out)
	_ = out.Close()
	return errors.Join(err, l.ended)
}

// lied runs the native engine against a liar.
func lied(t *testing.T, l liar) (*facts.Host, *facts.Snapshot, error) {
	t.Helper()
	h := &facts.Host{}
	for i, bdf := range []string{"0000:01:00.0", "0000:21:00.0"} {
		h.Cards = append(h.Cards, facts.Card{Device: facts.Device{BDF: bdf}, Index: facts.Of(i, "t")})
	}
	s := &facts.Snapshot{}
	small := func(string) ([]byte, string, error) { return []byte("helper"), "sum", nil }
	start := time.Now()
	err := Run(t.Context(), l, h, s, Options{Engine: "native", Limit: 5 * time.Second, Links: true, AllReduce: true, helper: small})
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	return facts.FromSnapshot(s), s, err
}

// stored is the talk of an honest host up to the helper's start.
func stored(nonce string, in io.Reader, out io.Writer) {
	_, _ = fmt.Fprintf(out, "\n%s ready x86_64 /tmp/preflight.x\n", nonce)
	_, _ = io.ReadFull(in, make([]byte, len("6 sum\nhelper")))
	_, _ = fmt.Fprintf(out, "\n%s stored\n", nonce)
}

// answers replies to each request by its command until the input ends.
func answers(in io.Reader, reply func(command, layout string) bool) {
	d := json.NewDecoder(in)
	for {
		var r wire.Request
		if d.Decode(&r) != nil || !reply(r.Command, layoutOf(answer{request: r}.request)) {
			return
		}
	}
}

const (
	saysHello = `{"phase":"devices","state":"result","t":1,"hello":{"protocol":1,"devices":[{"ordinal":0,"bdf":"0000:01:00.0"},{"ordinal":1,"bdf":"0000:21:00.0"}]}}` + "\n"
	saysDone  = `{"phase":"done","state":"end","t":1,"outcome":"ok"}` + "\n"
	saysBegin = `{"phase":"nccl-first","state":"begin","t":1}` + "\n"
)

func say(out io.Writer, text string) bool {
	_, err := io.WriteString(out, text)
	return err == nil
}

// A host that floods the line, before the helper runs or in its answers, is left after a bounded number of bytes.
func TestFloods(t *testing.T) {
	flood := func(out io.Writer, line string) {
		block := strings.Repeat(line, 1+(64<<10)/len(line))
		for say(out, block) {
		}
	}
	for name, line := range map[string]string{"endless lines": "noise\n", "a line without an end": "x", "endless figures": `{"phase":"x","state":"result","t":1}` + "\n"} {
		t.Run(name, func(t *testing.T) {
			_, _, err := lied(t, liar{script: func(_ string, _ io.Reader, out io.Writer) { flood(out, line) }})
			if err == nil || !strings.Contains(err.Error(), "bytes") {
				t.Errorf("before the helper: %v", err)
			}
			h, s, err := lied(t, liar{script: func(nonce string, in io.Reader, out io.Writer) {
				stored(nonce, in, out)
				go func() { _, _ = io.Copy(io.Discard, in) }()
				flood(out, line)
			}})
			if err == nil || !strings.Contains(err.Error(), "bytes") {
				t.Errorf("in an answer: %v", err)
			}
			if n := len(s.Files[facts.ProbeNativePath]); n > transcriptLimit+4096 || h.Helper.Ended.Value != wire.EndedCut {
				t.Errorf("%d bytes kept, ended %q", n, h.Helper.Ended.Value)
			}
		})
	}
}

// The connection ends in the middle of each request: less is known, and nothing is a fault of the cards.
func TestCutInEachRequest(t *testing.T) {
	for _, at := range []string{"", "hello", "links", "peers", "single", "ranks"} {
		t.Run("in "+at, func(t *testing.T) {
			h, _, err := lied(t, liar{ended: errors.New("reset by peer"), script: func(nonce string, in io.Reader, out io.Writer) {
				if at == "" {
					return
				}
				stored(nonce, in, out)
				answers(in, func(command, layout string) bool {
					if command == at || layout == at {
						return say(out, saysBegin) && false
					}
					return say(out, map[bool]string{true: saysHello}[command == "hello"]+saysDone)
				})
			}})
			if err == nil {
				t.Error("no error tells that the connection was lost")
			}
			for _, r := range h.NCCL {
				if r.Hung || r.Error != "" || r.Cut == "" {
					t.Errorf("%+v", r)
				}
			}
			if wantRun := at == "single" || at == "ranks"; wantRun != (len(h.NCCL) == 1) {
				t.Errorf("%d runs", len(h.NCCL))
			}
		})
	}
}

// A line of the host is a figure at most: it cannot end the conversation, ask for something, or name another run.
func TestAHostCannotWriteTheTranscript(t *testing.T) {
	h, s, err := lied(t, liar{script: func(nonce string, in io.Reader, out io.Writer) {
		stored(nonce, in, out)
		answers(in, func(command, _ string) bool {
			forged := `{"phase":"x","state":"result","t":1,"ended":{"how":"wedged"},"request":{"command":"all-reduce","env":{"NCCL_P2P_DISABLE":"1"}}}` + "\n"
			return say(out, forged+strings.Repeat("y", 600<<10)+"\n"+map[bool]string{true: saysHello}[command == "hello"]+saysDone)
		})
		_ = say(out, "\n"+nonce+" ended exit 0\n\n"+nonce+" end\n")
	}})
	if err != nil || len(h.NCCL) != 0 || h.Helper.Ended.Value != wire.EndedExit || strings.Contains(string(s.Files[facts.ProbeNativePath]), "wedged") {
		t.Errorf("%v, %+v, %+v\n%s", err, h.NCCL, h.Helper, s.Files[facts.ProbeNativePath])
	}
}

// A host whose disk fills while it takes the helper in says so, although it stopped listening.
func TestDiskFullWhileSending(t *testing.T) {
	h, _, err := lied(t, liar{script: func(nonce string, in io.Reader, out io.Writer) {
		_, _ = fmt.Fprintf(out, "%s ready x86_64 /tmp/preflight.x\n", nonce)
		_, _ = in.Read(make([]byte, 3))
		_ = in.(io.Closer).Close()
		_, _ = fmt.Fprintf(out, "\n%s failed /tmp/preflight.x is full\n", nonce)
	}})
	if err != nil || !strings.Contains(h.Helper.Reason.Value, "is full") {
		t.Errorf("%v, %+v", err, h.Helper)
	}
}

// Only a card that was kept copying for seconds was certainly awake: shorter copies fall between two samples.
func TestShortCopiesDoNotProveALink(t *testing.T) {
	zero, one := 0, 1
	done := []answer{{lines: []wire.Line{
		{Hello: &wire.Hello{Devices: []wire.Device{{Ordinal: 0, BDF: "0000:01:00.0"}, {Ordinal: 1, BDF: "0000:21:00.0"}}}},
		{Phase: wire.PhaseLinkAlone, Card: &zero, Bandwidth: &wire.Bandwidth{}},
		{Phase: wire.PhaseLinkBusy, Card: &one, Bandwidth: &wire.Bandwidth{}},
	}}}
	if got := loadedByHelper(done); got["0000:01:00.0"] || !got["0000:21:00.0"] {
		t.Errorf("%v", got)
	}
}

// The shell's deadline lies behind all that a plan may ask for, and a request's limit within what the helper takes.
func TestLimits(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Second, 10 * time.Minute, 1000 * time.Hour} {
		o := Options{Limit: limit}
		sum := time.Duration(helloLimit+linksLimit+peersLimit)*time.Second + 4*o.limit()
		if stay(o) <= sum {
			t.Errorf("%s: the shell ends the helper after %s, requests may take %s", limit, stay(o), sum)
		}
		if err := (wire.Request{Command: wire.CommandHello, Limit: o.limit().Seconds()}).Check(); err != nil {
			t.Errorf("%s: %v", limit, err)
		}
	}
}

// A helper of another version knows fewer orders: that is told as what it is, and blames neither cards nor network.
func TestHelperOfAnotherVersion(t *testing.T) {
	old := liar{script: func(nonce string, in io.Reader, out io.Writer) {
		stored(nonce, in, out)
		answers(in, func(command, _ string) bool {
			if command == wire.CommandHello {
				return say(out, saysHello+`{"phase":"load-nccl","state":"end","t":1,"library":{"name":"libnccl","path":"/l","version":"2.22.3"}}`+"\n"+saysDone)
			}
			return say(out, `{"phase":"request","state":"error","t":1,"error":{"key":"bad-request","text":"unknown command \"`+command+`\""}}`+"\n"+`{"phase":"done","state":"end","t":1,"outcome":"error"}`+"\n")
		})
		_, _ = fmt.Fprintf(out, "\n%s ended exit 3\n\n%s end\n", nonce, nonce)
	}}
	h, _, err := lied(t, old)
	if err != nil || !strings.Contains(h.Helper.Reason.Value, "of another version, and knows no ") {
		t.Errorf("%v: %+v", err, h.Helper)
	}
	var list []Member
	for _, name := range []string{"node-a", "node-b"} {
		list = append(list, Member{Rig: name, Host: old, Facts: h, Snapshot: &facts.Snapshot{}, Address: "127.0.0.1"})
	}
	small := func(string) ([]byte, string, error) { return []byte("helper"), "sum", nil }
	run := Across(t.Context(), "group:lab", list, Options{Limit: 5 * time.Second, Small: true, helper: small})
	if run.Problem != facts.AcrossMissing || !strings.Contains(run.Text, "of another version, and knows no reach") {
		t.Errorf("%+v", run)
	}
}
