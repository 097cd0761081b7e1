package probe

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"preflight/internal/collect"
	"preflight/internal/facts"
)

// shell runs the script as a host would, with stub tools first in PATH and a root of its own.
type shell struct {
	argv []string
	env  []string
}

func (s shell) RunScript(ctx context.Context, script []byte, stdout io.Writer) error {
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout = s.env, bytes.NewReader(script), stdout
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

func (s shell) Talk(ctx context.Context, script []byte, talk func(in io.WriteCloser, out io.Reader) error) error {
	return collect.Shell{Argv: s.argv, Env: s.env}.Talk(ctx, script, talk)
}

const header = `echo '# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809'
echo '# Using devices'
echo '#  Rank  0 Group  0 Pid 1 on h device  0 [0000:01:00] NVIDIA GeForce RTX 4090'
echo '#  Rank  1 Group  0 Pid 1 on h device  1 [0000:21:00] NVIDIA GeForce RTX 4090'
echo '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong'
`

// host builds a directory with stub tools and two cards whose links read Gen4 while the tool runs.
func host(t *testing.T, sh string, tool string) (shell, *facts.Host) {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if tool != "" {
		write(filepath.Join(bin, "all_reduce_perf"), "#!/bin/sh\n[ \"$1\" = --help ] && { echo 'USAGE: [-b,--minbytes] [-J,--output_file]'; exit 0; }\n"+tool, 0o755)
	}
	write(filepath.Join(bin, "nvidia-smi"), "#!/bin/sh\necho '00000000:01:00.0, P2, 99'\necho '00000000:21:00.0, P8, 0'\n", 0o755)
	h := &facts.Host{}
	for i, bdf := range []string{"0000:01:00.0", "0000:21:00.0"} {
		write(filepath.Join(dir, "sys/bus/pci/devices", bdf, "current_link_speed"), "16.0 GT/s PCIe\n", 0o644)
		write(filepath.Join(dir, "sys/bus/pci/devices", bdf, "current_link_width"), "16\n", 0o644)
		h.Cards = append(h.Cards, facts.Card{Device: facts.Device{BDF: bdf}, Index: facts.Of(i, "t")})
	}
	argv := strings.Fields(sh)
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Skipf("%s is not installed", argv[0])
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p := running(dir); p != "" {
			t.Errorf("still running on the host: %s", p)
		}
		if left, _ := os.ReadDir(tmp); len(left) > 0 {
			t.Errorf("%d files left behind on the host, the first is %s", len(left), left[0].Name())
		}
	})
	return shell{argv: append(argv, "-s"), env: []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + tmp, "PREFLIGHT_ROOT=" + dir}}, h
}

// running is the command line of a process that names the host's directory, or "".
func running(dir string) string {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), dir) {
			return strings.ReplaceAll(string(raw), "\x00", " ")
		}
	}
	return ""
}

func probed(t *testing.T, sh, tool string, limit time.Duration) *facts.Host {
	t.Helper()
	run, h := host(t, sh, tool)
	s := &facts.Snapshot{}
	if err := Run(t.Context(), run, h, s, Options{Engine: "nccl-tests", Limit: limit}); err != nil {
		t.Fatal(err)
	}
	return facts.FromSnapshot(s)
}

var shells = []string{"dash", "busybox ash"}

func TestAllReduce(t *testing.T) {
	const row = "echo '   268435456      67108864     float     sum      -1    33587   13.90   13.90      0    33591   14.10   14.10      0'\n"
	for _, sh := range shells {
		t.Run(sh, func(t *testing.T) {
			h := probed(t, sh, header+"sleep 1\n"+row+"echo '# Out of bounds values : 0 OK'\necho 'h:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct' >\"$(echo $NCCL_DEBUG_FILE | sed s/%p/1/)\"\n", 20*time.Second)
			r := h.NCCL[0]
			if got, _ := r.Plateau(); got.BusBW != 14.1 || r.Ranks != 2 || r.Transport != "SHM" || r.Library != "2.28.9" || r.Hung || r.Wrong != 0 {
				t.Errorf("%+v", r)
			}
			if len(h.Load) != 2 || h.Load[0].Speed != 16 || h.Load[0].Width != 16 || !h.Load[0].Loaded || h.Load[1].Loaded {
				t.Errorf("links: %+v; only the card at work proves anything", h.Load)
			}
		})
	}
}

// What a login sets for NCCL or CUDA must not be taken for the rig: nccl-tests sees none of it.
func TestLoginsSettingsAreTakenAway(t *testing.T) {
	run, h := host(t, "/bin/sh", header+"env | grep -E '^(NCCL_P2P|NCCL_SOCKET|CUDA_VISIBLE)' >>\"$HOME/saw\"\necho x >>\"$HOME/saw\"\n")
	run.env = append(run.env, "NCCL_P2P_DISABLE=1", "NCCL_SOCKET_IFNAME=docker0", "CUDA_VISIBLE_DEVICES=0", "KEPT=1")
	if err := Run(t.Context(), run, h, &facts.Snapshot{}, Options{Engine: "nccl-tests", Limit: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	home := ""
	for _, e := range run.env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		}
	}
	saw, err := os.ReadFile(filepath.Join(home, "saw"))
	if err != nil || strings.TrimSpace(string(saw)) != "x" {
		t.Errorf("the run saw %q (%v)", saw, err)
	}
}

func TestAllReduceThatHangsIsEnded(t *testing.T) {
	for _, sh := range shells {
		t.Run(sh, func(t *testing.T) {
			start := time.Now()
			h := probed(t, sh, header+"trap '' TERM\nsleep 100 & sleep 100\n", 2*time.Second)
			if r := h.NCCL[0]; !r.Hung || r.Phase == "" || r.Ranks != 2 {
				t.Errorf("%+v", r)
			}
			if took := time.Since(start); took > 12*time.Second {
				t.Errorf("it took %s to give up on a run with a deadline of 2 s", took)
			}
		})
	}
}

func TestAllReduceFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		tool    string
		missing string
		err     string
	}{
		"no tool":      {"", "no all_reduce_perf", ""},
		"cannot start": {"echo 'all_reduce_perf: error while loading shared libraries: libnccl.so.2: cannot open shared object file' >&2; exit 127\n", "libnccl.so.2", ""},
		"cuda error":   {header + "echo \"h: Test CUDA failure common.cu:1045 'out of memory'\"; exit 2\n", "", "out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			r := probed(t, "dash", tc.tool, 20*time.Second).NCCL[0]
			if !strings.Contains(r.Missing, tc.missing) || (r.Missing == "") != (tc.missing == "") || !strings.Contains(r.Error, tc.err) {
				t.Errorf("missing %q error %q", r.Missing, r.Error)
			}
		})
	}
}

func TestBusyCardsAreLeftAlone(t *testing.T) {
	card := func(change func(*facts.Card)) *facts.Host {
		h := &facts.Host{Cards: []facts.Card{{Device: facts.Device{BDF: "0000:01:00.0"}, Index: facts.Of(0, "t")}, {Device: facts.Device{BDF: "0000:21:00.0"}, Index: facts.Of(1, "t")}}}
		change(&h.Cards[1])
		return h
	}
	for name, tc := range map[string]struct {
		h    *facts.Host
		busy bool
	}{
		"idle":                         {card(func(*facts.Card) {}), false},
		"a compute process":            {card(func(c *facts.Card) { c.Processes = facts.Of(1, "t") }), true},
		"over 1 GiB used":              {card(func(c *facts.Card) { c.UsedMiB = facts.Of(int64(2000), "t") }), true},
		"a display server holds 2 GiB": {card(func(c *facts.Card) { c.UsedMiB, c.Display = facts.Of(int64(2000), "t"), facts.Of(true, "t") }), false},
		"Slurm runs a job here": {func() *facts.Host {
			h := card(func(*facts.Card) {})
			h.Software.SlurmJobs = facts.Of([]string{"4711"}, "t")
			return h
		}(), true},
		"6 % in every sample": {card(func(c *facts.Card) { c.MinUtil = facts.Of(6, "t") }), true},
	} {
		s := &facts.Snapshot{}
		never := neverRun{t}
		if !tc.busy {
			if Busy(tc.h) != "" {
				t.Errorf("%s: %s", name, Busy(tc.h))
			}
			continue
		}
		if err := Run(t.Context(), never, tc.h, s, Options{}); err != nil {
			t.Fatal(err)
		}
		if r := facts.FromSnapshot(s).NCCL; len(r) != 1 || r[0].Busy == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// neverRun fails the test when a busy host is touched.
type neverRun struct{ t *testing.T }

func (n neverRun) RunScript(context.Context, []byte, io.Writer) error {
	n.t.Error("a busy host was probed")
	return nil
}

func (n neverRun) Talk(context.Context, []byte, func(io.WriteCloser, io.Reader) error) error {
	n.t.Error("a busy host was talked with")
	return nil
}

func TestEndlessOutputIsBounded(t *testing.T) {
	c := &capped{limit: 10}
	for range 5 {
		if n, err := c.Write([]byte("abcdef")); n != 6 || err != nil {
			t.Fatal(n, err)
		}
	}
	if c.Len() != 10 {
		t.Errorf("%d bytes kept", c.Len())
	}
}

func FuzzSections(f *testing.F) {
	f.Add("noise\nN tool /x\nN output\n# algbw\nN exit 0\nN end\n")
	f.Fuzz(func(_ *testing.T, s string) {
		parts := sections([]byte(s), "N")
		samples(parts["links"], loadedCards(parts["cards"]), &facts.Host{Cards: []facts.Card{{Device: facts.Device{BDF: "0000:01:00.0"}}}})
		result(parts, 2)
	})
}
