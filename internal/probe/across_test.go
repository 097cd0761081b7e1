package probe

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"preflight/internal/facts"
	"preflight/internal/fakegpu"
)

// members are hosts of two made-up cards each; more is further environment of single ones.
func members(t *testing.T, n int, more map[int][]string) ([]Member, built) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler for the made-up driver")
	}
	b, err := fakes()
	if err != nil {
		t.Fatal(err)
	}
	var out []Member
	for i := range n {
		run, h := host(t, "/bin/sh", "")
		run.env = append(run.env, fakegpu.Cards{BDFs: []string{"0000:01:00.0", "0000:21:00.0"}, Links: []float64{24.6, 24.6}, Name: "NVIDIA GeForce RTX 4090"}.Env(b.libs)...)
		run.env = append(run.env, more[i]...)
		out = append(out, Member{Rig: fmt.Sprintf("node-%c", 'a'+i), Host: run, Facts: h, Snapshot: &facts.Snapshot{}, Address: "127.0.0.1"})
	}
	return out, b
}

func across(t *testing.T, list []Member, b built, limit time.Duration) facts.AcrossRun {
	t.Helper()
	begun := time.Now()
	run := Across(t.Context(), "group:lab", list, Options{Limit: limit, Small: true, helper: b.helper})
	if took := time.Since(begun); took > limit+40*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, m := range list { // every host's snapshot tells the same, also when it is read again
		again := facts.FromSnapshot(m.Snapshot).Across
		if again == nil {
			t.Fatalf("%s keeps nothing", m.Rig)
		}
		if d := cmp.Diff(run, *again); d != "" {
			t.Errorf("%s reads another result:\n%s", m.Rig, d)
		}
	}
	return run
}

func TestAcrossHosts(t *testing.T) {
	list, b := members(t, 3, nil)
	run := across(t, list, b, 20*time.Second)
	if run.Problem != "" || run.Ranks != 6 || run.Wrong != 0 || len(run.Rows) != 2 || run.Rows[1].BusBW <= 0 || run.Library != "2.22.3" {
		t.Fatalf("%+v", run)
	}
	for _, h := range run.Hosts {
		if h.Cards != 2 || h.Interface != "lo" || h.Address != "127.0.0.1" || h.HighPort == 0 || !h.Virtual {
			t.Errorf("%+v", h)
		}
	}
}

func TestAcrossHostsFaults(t *testing.T) {
	for _, tc := range []struct {
		name    string
		env     map[int][]string
		change  func([]Member)
		problem string
		where   []string
		phase   string
		text    string
	}{
		{"another version", map[int][]string{1: {"FAKE_NCCL_VERSION=22602"}}, nil, facts.AcrossVersions, nil, "", "node-a 2.22.3, node-b 2.26.2"},
		{"hangs before all others", map[int][]string{1: {"FAKE_GPU_FAULT=context-hang"}}, nil, facts.AcrossHang, []string{"node-b"}, "context", ""},
		{"hangs in the first all-reduce", map[int][]string{0: {"FAKE_GPU_FAULT=first-hang"}}, nil, facts.AcrossHang, nil, "nccl-first", ""},
		{"crashes", map[int][]string{1: {"FAKE_GPU_FAULT=crash"}}, nil, facts.AcrossError, []string{"node-b"}, "", ""},
		{"wrong sums", map[int][]string{0: {"FAKE_GPU_FAULT=wrong-sums"}}, nil, "", nil, "", ""},
		{"no driver", map[int][]string{1: {"FAKE_GPU_FAULT=no-device"}}, nil, facts.AcrossMissing, []string{"node-b"}, "", ""},
		{"no such interface", nil, func(m []Member) { m[1].NIC = "gremlin0" }, facts.AcrossInterface, []string{"node-b"}, "", "there is no interface gremlin0 here"},
		{"cards at work", nil, func(m []Member) { m[1].Facts.Cards[0].Processes = facts.Of(1, "t") }, facts.AcrossBusy, []string{"node-b"}, "", "runs 1 compute processes"},
		{"the connection is cut", map[int][]string{0: {"FAKE_GPU_FAULT=init-hang"}}, func(m []Member) { m[1].Host = cutHost{m[1].Host, 3 * time.Second} }, facts.AcrossLost, []string{"node-b"}, "", ""},
		{"the second host hears nobody", nil, func(m []Member) { m[0].Host = deafHost{m[0].Host} }, facts.AcrossUnreachable, nil, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, b := members(t, 2, tc.env)
			if tc.change != nil {
				tc.change(list)
			}
			run := across(t, list, b, 8*time.Second)
			if run.Problem != tc.problem || tc.where != nil && !slices.Equal(run.Where, tc.where) || tc.phase != "" && run.Phase != tc.phase || !strings.Contains(run.Text, tc.text) {
				t.Errorf("%+v", run)
			}
			if tc.name == "wrong sums" && run.Wrong <= 0 {
				t.Errorf("wrong is %d", run.Wrong)
			}
			if tc.problem == facts.AcrossUnreachable && (len(run.Blocked) != 1 || run.Blocked[0].From != "node-b" || run.Blocked[0].To != "node-a" || run.Blocked[0].Result != "refused") {
				t.Errorf("blocked: %+v", run.Blocked)
			}
		})
	}
}

// cutHost loses its connection after a while.
type cutHost struct {
	Host
	after time.Duration
}

func (c cutHost) Talk(ctx context.Context, script []byte, talk func(io.WriteCloser, io.Reader) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.after, fmt.Errorf("the connection was lost"))
	defer cancel()
	return c.Host.Talk(ctx, script, talk)
}

// deafHost tells a port on which nobody listens, as one behind a firewall does.
type deafHost struct{ Host }

func (d deafHost) Talk(ctx context.Context, script []byte, talk func(io.WriteCloser, io.Reader) error) error {
	return d.Host.Talk(ctx, script, func(in io.WriteCloser, out io.Reader) error { return talk(in, &otherPort{r: out}) })
}

// otherPort changes the port in what a helper says of its listener.
type otherPort struct {
	r    io.Reader
	rest []byte
}

func (o *otherPort) Read(p []byte) (int, error) {
	if len(o.rest) == 0 {
		buf := make([]byte, 32<<10)
		n, err := o.r.Read(buf)
		if err != nil {
			return n, err
		}
		text := string(buf[:n])
		if i := strings.Index(text, `"port":`); i >= 0 {
			digits := len(text[i+7:]) - len(strings.TrimLeft(text[i+7:], "0123456789"))
			text = text[:i+7] + strings.Repeat("1", 1) + text[i+7+digits:]
		}
		o.rest = []byte(text)
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func TestPeers(t *testing.T) {
	if got := peersOf(1, 3); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("of three: %v", got)
	}
	for n := range 40 {
		reached := map[[2]int]bool{}
		for i := range n {
			for _, j := range peersOf(i, n) {
				reached[[2]int{i, j}] = true
				if i == j {
					t.Errorf("%d dials itself", i)
				}
			}
		}
		for i := range n { // a ring in both directions, and everybody to the host of rank 0
			next := (i + 1) % n
			for _, way := range [][2]int{{i, next}, {next, i}, {i, 0}, {0, i}} {
				if way[0] != way[1] && !reached[way] {
					t.Errorf("%d hosts: nobody tries %v", n, way)
				}
			}
		}
	}
}
