package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"preflight/inventory"
)

func connected(t *testing.T, change func(*server)) (*Host, *server) {
	t.Helper()
	c := newClient(t)
	s := serve(t, c.pub)
	if change != nil {
		change(s)
	}
	knows(t, c.known(), s)
	h, err := c.dial(t, rigAt(s))
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}

// Whatever bytes a script holds, they reach the shell as they are, and it sees no input but itself.
func TestScriptsArriveUnchanged(t *testing.T) {
	h, _ := connected(t, nil)
	large := "x='" + strings.Repeat("0123456789abcdef", 40_000) + "'\necho ${#x}\n" // over any limit on arguments
	for name, tc := range map[string]struct{ script, want string }{
		"quotes":            {"echo 'a'\"b\"\\'c`echo d`$(echo e)\n", "ab'cde\n"},
		"here-document":     {"cat <<'E'\n$x 'y' \\\nE\n", "$x 'y' \\\n"},
		"no newline at end": {"printf end", "end"},
		"640 KB":            {large, "640000\n"},
		"exit code":         {"echo before; exit 3", "before\n"},
		"bytes above 127":   {"printf '\\377\\000|'", "\xff\x00|"},
		"placeholders":      {"echo @NONCE@ @ASK@ @BODY@\n", "@NONCE@ @ASK@ @BODY@\n"},
		"nothing":           {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			access, err := h.Run(t.Context(), []byte(tc.script), &out)
			if err != nil || out.String() != tc.want || access.Root == "" {
				t.Errorf("%+v, %v, output %.200q", access, err, out.String())
			}
		})
	}
}

func TestLoginThatEndsWellButRunsNothing(t *testing.T) {
	h, _ := connected(t, func(s *server) { s.shell, s.preamble = []string{"/bin/true"}, "only\x1b[31m sftp here\n" })
	_, err := h.Run(t.Context(), []byte("echo x"), io.Discard)
	if p, text := phaseOf(t, err); p != PhaseCommand || !strings.Contains(text, "ended with 0 before the script began: only?[31m sftp here") {
		t.Errorf("%s: %q", p, text)
	}
}

func TestBannerBeforeTheVersion(t *testing.T) {
	h, _ := connected(t, func(s *server) { s.banner = "Unauthorised access is forbidden\r\nReally\r\n" })
	var out bytes.Buffer
	if _, err := h.Run(t.Context(), []byte("echo ok"), &out); err != nil || out.String() != "ok\n" {
		t.Errorf("%v %q", err, out.String())
	}
}

// A host that lets a login in and then answers nothing holds nobody up beyond the deadline.
func TestSessionThatIsNeverOpened(t *testing.T) {
	h, _ := connected(t, func(s *server) { s.stuck = true })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("long enough"))
	defer cancel()
	start := time.Now()
	_, err := h.Run(ctx, []byte("echo x"), io.Discard)
	if err == nil || err.Error() != "long enough" || time.Since(start) > time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

// lateWriter fails the test when it is written to after Run has returned.
type lateWriter struct {
	mu       sync.Mutex
	returned bool
	late     bool
}

func (w *lateWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = w.late || w.returned
	return len(p), nil
}

func TestNothingIsWrittenAfterRun(t *testing.T) {
	h, _ := connected(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	w := &lateWriter{}
	if _, err := h.Run(ctx, []byte("yes"), w); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	w.mu.Lock()
	w.returned = true
	w.mu.Unlock()
	time.Sleep(200 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.late {
		t.Error("written to after Run had returned")
	}
}

// A child that holds the channel open after the script ended is not waited for.
func TestChildThatStays(t *testing.T) {
	h, _ := connected(t, nil)
	start := time.Now()
	var out bytes.Buffer
	if _, err := h.Run(t.Context(), []byte("sleep 20 >/dev/null &\necho done"), &out); err != nil || out.String() != "done\n" || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v %q", time.Since(start), err, out.String())
	}
}

func TestErrorOutputIsBoundedAndPlain(t *testing.T) {
	h, _ := connected(t, func(s *server) {
		s.shell = []string{"/bin/sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 9"}
	})
	_, err := h.Run(t.Context(), []byte("echo x"), io.Discard)
	if _, text := phaseOf(t, err); len(text) > 1000 || !strings.Contains(text, "ended with 9") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

func TestEveryErrorNamesItsRig(t *testing.T) {
	c := newClient(t)
	_, err := c.dial(t, &inventory.Rig{Name: "node-z", Address: "127.0.0.1:1"})
	var e *Error
	if !errors.As(err, &e) || e.Rig != "node-z" || len(e.Advice) == 0 || e.Unwrap() == nil {
		t.Errorf("%+v", e)
	}
	h, _ := connected(t, func(s *server) { s.shell = []string{"/bin/false"} })
	_, err = h.Run(t.Context(), []byte("echo x"), io.Discard)
	if !errors.As(err, &e) || e.Rig != "node-a" {
		t.Errorf("%+v", e)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"two\nlines\r\n":                "two lines",
		"\x1b]0;title\x07red\x1b[31m":   "?]0;title?red?[31m",
		"bad \xff utf-8, good ü 卡":      "bad \ufffd utf-8, good ü 卡",
		"right-to-left \u202e override": "right-to-left ? override",
		strings.Repeat("é", 401):        strings.Repeat("é", 400) + " …",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// FuzzHost lets a host say anything to the client once it is logged in: no panic, no endless wait.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"", "\n", "N begin root\nhello", "N begin\n", "N password\nN password\nN begin sudo\n", "N \nN what\n", strings.Repeat("N password\n", 50), "N begin none \x1b[2J\nx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		client, host := net.Pipe()
		defer func() { _ = client.Close() }()
		go func() { _, _ = io.Copy(io.Discard, host) }() // whatever is sent
		d := New(Options{Home: "/nonexistent", ConfigFiles: []string{}, Prompt: func(string, bool) (string, error) { return "pw", nil }})
		defer d.Close()
		var out bytes.Buffer
		r := &run{h: &Host{d: d}, nonce: "N", in: client, stdout: &gate{w: &out}, notes: &bounded{limit: 10}, out: bufio.NewReader(strings.NewReader(said))}
		err := r.copy()
		if strings.Contains(r.result().Why, "\x1b") || err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%+v %v", r.result(), err)
		}
		if _, rest, ok := strings.Cut(said, "N begin root\n"); ok && r.result().Root == "root" && !strings.HasSuffix(out.String(), rest) {
			t.Errorf("output %q of %q", out.String(), said)
		}
	})
}
