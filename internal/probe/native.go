package probe

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"preflight/internal/facts"
	"preflight/internal/probe/wire"
)

//go:embed native.sh
var nativeScript string

// transcriptLimit bounds what is kept of a conversation, heardLimit all that is listened to, and lineLimit one line,
// bytes. The helper's own lines are far shorter; what is longer is noise of the host.
const (
	transcriptLimit = 8 << 20
	heardLimit      = 16 << 20
	lineLimit       = 512 << 10
)

// native sends preflight's own helper to a host and talks with it. The helper has deadlines for every phase, the shell
// that started it one for all, and the connection here one more.
func native(ctx context.Context, host Host, h *facts.Host, s *facts.Snapshot, o Options) (ran bool, why string, err error) {
	nonce := newNonce()
	total := stay(o)
	script := fillNative(h, nonce, total)
	ctx, cancel := context.WithTimeoutCause(ctx, total+grace, errors.New("the host did not answer in time"))
	defer cancel()
	c := &conversation{nonce: nonce, plan: newPlan(h, o), find: Helper, tell: o.Tell}
	if o.helper != nil {
		c.find = o.helper
	}
	err = host.Talk(ctx, script, c.talk)
	switch {
	case err == nil:
	case len(c.done) == 0 && c.ended.How == "":
		return false, "", err
	default:
		c.ended.How, c.ended.Why = wire.EndedCut, err.Error()
	}
	c.ended.Stderr = strings.ReplaceAll(c.ended.Stderr, c.ended.Place+"/", "")
	if c.ended.How != wire.EndedNever {
		why = c.silence(o)
	}
	c.keep(wire.Entry{Ended: &c.ended})
	s.Files[facts.ProbeNativePath] = c.transcript.Bytes()
	if c.ended.How == wire.EndedNever {
		return false, c.ended.Why, nil
	}
	if rows := samples(c.tail["links"], loadedByHelper(c.done), h); len(rows) > 0 {
		saveLinks(s, rows)
	}
	if c.ended.How == wire.EndedCut {
		return true, "", err
	}
	return why == "", why, nil
}

// fillNative writes the host's own numbers into the script.
func fillNative(h *facts.Host, nonce string, limit time.Duration) []byte {
	return []byte(strings.NewReplacer("@PROCESSES@", processes, "@NONCE@", nonce, "@LIMIT@", strconv.Itoa(int(limit.Seconds())), "@BUSES@", strings.Join(hops(h), " ")).Replace(nativeScript))
}

// conversation is one stay of the helper on a host.
type conversation struct {
	nonce string
	plan  plan
	find  func(machine string) ([]byte, string, error)
	tell  func(string)
	order func(*conversation) error // puts the requests; nil: as the plan has it

	mu         sync.Mutex // of in, once somebody else may hang up
	quit       bool
	in         io.WriteCloser
	out        *bufio.Reader
	heard      int // bytes
	done       []answer
	ended      wire.Ended
	tail       map[string]string // sections that the shell prints at the end
	transcript bytes.Buffer
}

func (c *conversation) talk(in io.WriteCloser, out io.Reader) error {
	c.mu.Lock()
	c.in, c.out = in, bufio.NewReaderSize(out, 64<<10)
	c.mu.Unlock()
	start := time.Now()
	ready, err := c.word()
	if err != nil {
		return err
	}
	kind, rest, _ := strings.Cut(ready, " ")
	if kind != "ready" {
		return c.never(rest)
	}
	c.ended.Arch, c.ended.Place, _ = strings.Cut(rest, " ")
	program, sum, err := c.find(c.ended.Arch)
	if err != nil {
		return c.never(err.Error())
	}
	sent := c.send(program, sum)
	stored, err := c.word() // a host that stopped taking it in may have said why
	if err != nil {
		return errors.Join(sent, err)
	}
	if stored != "stored" {
		return c.never(strings.TrimPrefix(stored, "failed "))
	}
	c.ended.Bytes, c.ended.PushMS = len(program), time.Since(start).Milliseconds()
	if c.order == nil {
		c.order = (*conversation).requests
	}
	if err := c.order(c); err != nil {
		return err
	}
	_ = c.in.Close()
	return c.end()
}

// hangUp ends the conversation from outside: the helper ends with its input.
func (c *conversation) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quit = true
	if c.in != nil {
		_ = c.in.Close()
	}
}

// hungUp says whether it was ended from outside.
func (c *conversation) hungUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quit
}

// never notes why the helper did not start.
func (c *conversation) never(why string) error {
	c.ended.How, c.ended.Why = wire.EndedNever, why
	_ = c.in.Close()
	return nil
}

func (c *conversation) send(program []byte, sum string) error {
	if _, err := fmt.Fprintf(c.in, "%d %s\n", len(program), sum); err != nil {
		return err
	}
	_, err := c.in.Write(program)
	return err
}

// word is the next line that the shell says; what else comes before it is noise of the host.
func (c *conversation) word() (string, error) {
	for c.heard < outputLimit {
		line, err := c.line()
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), c.nonce+" "); ok {
			return rest, nil
		}
		if errors.Is(err, io.EOF) {
			return "", errors.New("the host ended the probe before it began")
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("the host sent more than %d bytes before the probe began", outputLimit)
}

// line is the next line of the host. One that is too long is left out whole, and a host that never stops is not
// listened to for ever.
func (c *conversation) line() (string, error) {
	var kept []byte
	for {
		part, err := c.out.ReadSlice('\n')
		c.heard += len(part)
		if len(kept) <= lineLimit {
			kept = append(kept, part...)
		}
		switch {
		case c.heard > heardLimit:
			return "", fmt.Errorf("the host said more than %d bytes", heardLimit)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case len(kept) > lineLimit:
			return "", err
		}
		return string(kept), err
	}
}

// requests puts one request after another, as the plan has it. It returns early without an error when the helper is
// gone: the shell then tells how.
func (c *conversation) requests() error {
	for {
		r, more := c.plan.next(c.done)
		if !more {
			return nil
		}
		if _, gone, err := c.put(r, nil); gone || err != nil {
			return err
		}
	}
}

// put puts one request and reads its answer; heard, if not nil, hears each line as it comes. Gone says that the helper is not
// there any more: the shell then tells how.
func (c *conversation) put(r wire.Request, heard func(wire.Line)) (answer, bool, error) {
	c.keep(wire.Entry{Request: &r})
	raw, err := json.Marshal(r)
	if err != nil {
		return answer{}, true, err
	}
	if _, err := c.in.Write(append(raw, '\n')); err != nil {
		c.done = append(c.done, answer{request: r})
		return answer{request: r}, true, nil
	}
	a, gone, err := c.answer(r, heard)
	c.done = append(c.done, a)
	return a, gone, err
}

// answer reads up to the done line of a request. A line of the shell means that the helper is gone.
func (c *conversation) answer(r wire.Request, heard func(wire.Line)) (a answer, gone bool, err error) {
	a.request = r
	for {
		line, err := c.line()
		text := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(text, c.nonce+" "); ok {
			c.tail = map[string]string{}
			c.shell(rest)
			return a, true, nil
		}
		var l wire.Line
		if text != "" && json.Unmarshal([]byte(text), &l) == nil && l.Phase != "" {
			if e := l.Error; e != nil && e.Key == wire.KeyBadRequest && strings.HasPrefix(e.Text, "unknown command") {
				e.Text = "the helper in this preflight is of another version, and knows no " + r.Command + ": build it anew (make build)"
			}
			c.keep(wire.Entry{Line: l})
			a.lines = append(a.lines, l)
			if heard != nil {
				heard(l)
			}
			if words := wire.Words(r, l); words != "" && c.tell != nil {
				c.tell(words)
			}
			if l.Phase == wire.PhaseDone {
				a.outcome = l.Outcome
				return a, false, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return a, true, nil
		case err != nil:
			return a, true, err
		case c.transcript.Len() > transcriptLimit:
			return a, true, fmt.Errorf("the helper said more than %d bytes", transcriptLimit)
		}
	}
}

// end reads what the shell says when the helper is gone.
func (c *conversation) end() error {
	raw, err := io.ReadAll(io.LimitReader(c.out, outputLimit))
	for name, text := range sections(raw, c.nonce) {
		if c.tail == nil {
			c.tail = map[string]string{}
		}
		c.tail[name] = text
		if name == "ended" {
			c.shell("ended " + text)
		}
	}
	c.ended.Stderr = strings.TrimSpace(c.tail["stderr"])
	if c.ended.How == "" {
		c.ended.How, c.ended.Why = wire.EndedCut, "the host said nothing more"
	}
	return err
}

// shell reads "ended exit 0".
func (c *conversation) shell(words string) {
	f := strings.Fields(words)
	if len(f) >= 2 && f[0] == "ended" {
		c.ended.How = f[1]
		if len(f) > 2 {
			c.ended.Code, _ = strconv.Atoi(f[2])
		}
	}
}

// keep writes an entry down anew: a host's line can be no request and no end.
func (c *conversation) keep(e wire.Entry) {
	var v any = e.Line
	switch {
	case e.Request != nil:
		v = map[string]any{"request": e.Request}
	case e.Ended != nil:
		v = map[string]any{"ended": e.Ended}
	}
	raw, err := json.Marshal(v)
	if err == nil && (e.Ended != nil || c.transcript.Len() <= transcriptLimit) { // how it ended always counts
		c.transcript.Write(append(raw, '\n'))
	}
}

// silence is why the helper could not do what was asked although nothing is wrong with the cards: the libraries that
// it needs are not there. Another engine may then have its own. "" when it measured, or found a fault.
func (c *conversation) silence(o Options) string {
	if len(c.done) == 0 || c.done[0].outcome == "" && c.ended.How == wire.EndedExit {
		c.ended.Why = "the helper does not run on this host: " + firstNonEmpty(lastLine(c.ended.Stderr), fmt.Sprintf("it ended with %d", c.ended.Code))
		return c.ended.Why
	}
	for i, a := range c.done {
		if a.outcome != wire.OutcomeError || i > 0 && (a.request.Command != wire.CommandAllReduce || !o.AllReduce) {
			continue
		}
		for _, l := range a.lines {
			if l.Error != nil && (i == 0 || wire.Lacking(l.Error.Key)) {
				return l.Error.Error()
			}
		}
	}
	return ""
}

// loadedByHelper are the cards that the helper kept copying: their links were awake.
func loadedByHelper(done []answer) map[string]bool {
	bdf, out := map[int]string{}, map[string]bool{}
	for _, a := range done {
		for _, l := range a.lines {
			if l.Hello != nil {
				for _, d := range l.Hello.Devices {
					bdf[d.Ordinal] = strings.ToLower(d.BDF)
				}
			}
			if l.Phase == wire.PhaseLinkBusy && l.Bandwidth != nil && l.Card != nil { // shorter copies fall between two samples
				out[bdf[*l.Card]] = true
			}
		}
	}
	return out
}
