//go:build linux

package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"preflight/internal/probe/wire"
)

// tree makes empty files, and links written "path -> target", below a root.
func tree(t *testing.T, files ...string) disk {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path, target, link := strings.Cut(f, " -> ")
		name, text, _ := strings.Cut(path, " = ")
		if err := os.MkdirAll(filepath.Dir(root+name), 0o755); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(root+name, []byte(text), 0o755)
		if link {
			err = os.Symlink(root+target, root+name+".link")
			if err == nil {
				err = os.Rename(root+name+".link", root+name)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return disk{root}
}

func TestFindNCCL(t *testing.T) {
	const wheel = "/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
	cases := map[string]struct {
		disk disk
		r    wire.Request
		want []string // paths in order
	}{
		"nothing but the loader": {tree(t), wire.Request{}, []string{"libnccl.so.2"}},
		"the request's alone":    {tree(t, "/opt/x.so", "/usr/lib/x86_64-linux-gnu/libnccl.so.2"), wire.Request{LibNCCL: "/opt/x.so"}, []string{"/opt/x.so"}},
		"venv before the system": {
			tree(t, "/srv/env/bin/python", "/srv/env/pyvenv.cfg = include-system-site-packages = false\n", "/srv/env"+wheel, "/usr/lib/x86_64-linux-gnu/libnccl.so.2"),
			wire.Request{Pythons: []string{"/srv/env/bin/python"}},
			[]string{"/srv/env" + wheel, "libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2"},
		},
		"venv that shows the base": {
			tree(t, "/base/bin/python3", "/srv/env/bin/python -> /base/bin/python3", "/srv/env/pyvenv.cfg = include-system-site-packages = true\n", "/base"+wheel),
			wire.Request{Pythons: []string{"/srv/env/bin/python"}},
			[]string{"/base" + wheel, "libnccl.so.2"},
		},
		"venv that hides the base": {
			tree(t, "/base/bin/python3", "/srv/env/bin/python -> /base/bin/python3", "/srv/env/pyvenv.cfg = home = /base/bin\n", "/base"+wheel),
			wire.Request{Pythons: []string{"/srv/env/bin/python"}},
			[]string{"libnccl.so.2"},
		},
		"Debian's own Python": {
			tree(t, "/usr/bin/python3", "/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2"),
			wire.Request{Pythons: []string{"/usr/bin/python3"}},
			[]string{"/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2"},
		},
		"conda, found without being named": {tree(t, "/home/u/miniconda3/envs/train"+wheel), wire.Request{}, []string{"libnccl.so.2", "/home/u/miniconda3/envs/train" + wheel}},
		"an environment as a folder":       {tree(t, "/srv/env"+wheel), wire.Request{Pythons: []string{"/srv/env"}}, []string{"/srv/env" + wheel, "libnccl.so.2"}},
		"two names of one file": {
			tree(t, "/usr/local/cuda-12.4/lib64/libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2 -> /usr/local/cuda-12.4/lib64/libnccl.so.2"),
			wire.Request{},
			[]string{"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"},
		},
		"a relative name": {tree(t), wire.Request{Pythons: []string{"python3"}}, []string{"libnccl.so.2"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range existing(c.disk, findNCCL(c.disk, c.r)) {
				got = append(got, l.Path)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestFindCUDA(t *testing.T) {
	d := tree(t, "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/cuda/lib64/stubs/libcuda.so.1")
	got := findCUDA(d, wire.Request{})
	if len(got) != 2 || got[0].Path != "libcuda.so.1" || got[1].Path != "/usr/lib/wsl/lib/libcuda.so.1" {
		t.Errorf("%+v", got)
	}
}

func TestEnvironment(t *testing.T) {
	r := wire.Request{Command: wire.CommandAcross, Across: &wire.AcrossRequest{Interface: "eth1"}, Env: map[string]string{"NCCL_P2P_DISABLE": "1"}}
	got := environment(r, []string{"PATH=/bin", "NCCL_P2P_DISABLE=0", "NCCL_ALGO=Tree", "CUDA_VISIBLE_DEVICES=3"})
	for _, want := range []string{"PATH=/bin", "NCCL_P2P_DISABLE=1", "NCCL_SOCKET_IFNAME==eth1", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "NCCL_DEBUG_FILE=/proc/self/fd/3"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
	for _, kv := range got {
		if strings.HasPrefix(kv, "NCCL_ALGO") || strings.HasPrefix(kv, "CUDA_VISIBLE_DEVICES") {
			t.Errorf("inherited %s", kv)
		}
	}
}

func TestVersions(t *testing.T) {
	for code, want := range map[int32]string{2408: "2.4.8", 2804: "2.8.4", 20906: "2.9.6", 22203: "2.22.3", 22809: "2.28.9"} {
		if got := ncclVersion(code); got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
	if full(2708) >= oldestNCCL || full(2800) < oldestNCCL || full(22203) < oldestNCCL {
		t.Error("the oldest release is not where it is said to be")
	}
	for id, want := range map[string]string{"0000:C1:00.0": "0000:c1:00.0", "00000000:41:00.0": "0000:41:00.0", "00010000:01:00.0": "10000:01:00.0", "what": "what"} {
		if got := deviceBDF(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
}

func TestParseLog(t *testing.T) {
	edge := func(from, to int, kind, via string, n int) wire.Edge {
		return wire.Edge{From: from, To: to, Kind: kind, Via: via, Channels: n}
	}
	cases := map[string]struct {
		text string
		want wire.NCCLLog
	}{
		"2.14": {
			"h:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nNCCL version 2.14.3+cuda11.7\nh:1:2 [0] NCCL INFO Channel 00/0 : 0[4e000] -> 1[56000] via P2P/IPC/read\nh:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 4e000 - Init COMPLETE\n",
			wire.NCCLLog{Version: "2.14.3", Interface: "eth0:10.0.0.1<0>", Complete: 1, Transport: "P2P", Edges: []wire.Edge{edge(0, 1, "P2P", "P2P/IPC/read", 1)}},
		},
		"2.28 with a timestamp": {
			"h:1:2 [0] NCCL INFO Bootstrap: Using ens3:10.0.0.2<0>\nh:1:2 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 - Init START\n\n[2025-06-12 16:57:52] h:1:2 [32764] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 172.17.0.2<38847> failed\n",
			wire.NCCLLog{Interface: "ens3:10.0.0.2<0>", Started: 1, Warnings: []string{"socketStartConnect: Connect to 172.17.0.2<38847> failed"}},
		},
		"the weakest edge names the transport": {
			"Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\nChannel 01/0 : 0[0] -> 1[1] via P2P/direct pointer\nChannel 00 : 1[1] -> 2[2] via SHM/direct\nChannel 00/0 : 2[2] -> 0[0] [send] via NET/Socket/0\nUsing network Socket\n",
			wire.NCCLLog{Transport: "NET", Network: "Socket", Edges: []wire.Edge{edge(0, 1, "P2P", "P2P/direct pointer", 2), edge(1, 2, "SHM", "SHM/direct", 1), edge(2, 0, "NET", "NET/Socket/0", 1)}},
		},
		"2.8": {
			"Channel 00 : 0[1000] -> 1[2000] via direct shared memory\n",
			wire.NCCLLog{Transport: "SHM", Edges: []wire.Edge{edge(0, 1, "SHM", "direct shared memory", 1)}},
		},
		"refused": {"h:1:2 [0] NCCL INFO P2P is disabled between connected GPUs 1 and 0. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.\n", wire.NCCLLog{Refused: true}},
		"noise":   {"Channel x : via\n\x00\xff\n", wire.NCCLLog{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := parseLog(c.text)
			if !slices.Equal(got.Edges, c.want.Edges) || !slices.Equal(got.Warnings, c.want.Warnings) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			got.Edges, got.Warnings, c.want.Edges, c.want.Warnings = nil, nil, nil, nil
			if got.Version != c.want.Version || got.Transport != c.want.Transport || got.Network != c.want.Network || got.Interface != c.want.Interface ||
				got.Started != c.want.Started || got.Complete != c.want.Complete || got.Refused != c.want.Refused {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add("h:1:2 [0] NCCL INFO Channel 00/0 : 0[4e000] -> 1[56000] via P2P/IPC/read\n")
	f.Add("\n[2025-06-12 16:57:52] h:1:2 [0] a.cc:1 NCCL WARN x\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := parseLog(text)
		if len(l.Edges) > logEdges || len(l.Warnings) > logWarnings {
			t.Errorf("%d edges, %d warnings", len(l.Edges), len(l.Warnings))
		}
	})
}

func TestReduceRowIsNCCLTestsFormula(t *testing.T) {
	cases := map[string]struct {
		ranks  int
		factor float64
	}{"two": {2, 1}, "four": {4, 1.5}, "eight": {8, 1.75}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			row := reduceRow(wire.LayoutSingle, c.ranks, 1e9, []float64{8, 10, 9})
			if row.AlgBW != 10 || math.Abs(row.BusBW-10*c.factor) > 1e-9 || row.Median != 9*c.factor || row.Worst != 8*c.factor || math.Abs(row.Spread-0.2) > 1e-9 || math.Abs(row.TimeUS-1e5) > 1e-6 {
				t.Errorf("%+v", row)
			}
		})
	}
}

func TestPlanRounds(t *testing.T) {
	ask := wire.AllReduceRequest{WarmUp: 5, Iterations: 20, Batches: 5}
	cases := map[string]struct {
		once, budget float64
		want         wire.AllReduceRequest
	}{
		"fits":                       {0.01, 20, ask},
		"sick ring":                  {0.5, 20, wire.AllReduceRequest{WarmUp: 5, Iterations: 5, Batches: 5}},
		"one takes half the budget":  {10, 20, wire.AllReduceRequest{WarmUp: 1, Iterations: 1, Batches: 1}},
		"one takes more than it all": {30, 20, wire.AllReduceRequest{WarmUp: 1, Iterations: 1, Batches: 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := planRounds(c.once, c.budget, ask)
			if got.WarmUp != c.want.WarmUp || got.Iterations != c.want.Iterations || got.Batches != c.want.Batches {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// What a check of data must see: a lost block, a shifted one, one from elsewhere, a single bit.
func TestVerification(t *testing.T) {
	const n = 1 << 16
	good := make([]uint32, n)
	for i := range good {
		good[i] = word(uint32(i), 7)
	}
	cases := map[string]func(w []uint32){
		"a bit":           func(w []uint32) { w[n-1] ^= 1 },
		"a lost page":     func(w []uint32) { clear(w[4096:5120]) },
		"a shifted page":  func(w []uint32) { copy(w[2048:3072], good[1024:2048]) },
		"a pair of words": func(w []uint32) { w[0], w[1] = w[1], w[0] },
	}
	for name, harm := range cases {
		t.Run(name, func(t *testing.T) {
			w := slices.Clone(good)
			harm(w)
			if wrong, first := mismatch(w, 0, 7); wrong == 0 || first < 0 {
				t.Error("not seen")
			}
		})
	}
	if wrong, first := mismatch(good, 0, 7); wrong != 0 || first != -1 {
		t.Errorf("%d wrong from %d in what is right", wrong, first)
	}
	if wrong, _ := mismatch(good, 0, 8); wrong < n/2 {
		t.Error("an earlier copy's data pass for this one's")
	}
}

func TestSums(t *testing.T) {
	want := sums(3)
	mine := make([]float32, reducePeriod)
	total := make([]float32, reducePeriod)
	for r := range 3 {
		terms(mine, r)
		for i := range total {
			total[i] += mine[i]
		}
	}
	if n := wrongFloats(total, want); n != 0 {
		t.Errorf("%d sums differ", n)
	}
	terms(mine, 1)
	doubled := slices.Clone(total)
	for i := range doubled { // rank 1 counted twice in place of rank 2
		doubled[i] += mine[i] - term(uint32(i), 2)
	}
	if n := wrongFloats(doubled, want); n < reducePeriod/2 {
		t.Errorf("a rank in place of another is seen in %d elements only", n)
	}
	total[5] = float32(math.NaN())
	if wrongFloats(total, want) != 1 {
		t.Error("NaN is not seen")
	}
}

func TestCPUList(t *testing.T) {
	cases := map[string][]int{
		"0-2,8\n": {0, 1, 2, 8}, "5": {5}, "": nil, "3-1": nil, "0-99999999": nil, "a-b": nil,
	}
	for text, want := range cases {
		if got := cpuList(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestSummarise(t *testing.T) {
	if s := summarise([]float64{4, 1, 3, 2}); s.best != 4 || s.worst != 1 || s.median != 2.5 || s.spread != 0.75 {
		t.Errorf("%+v", s)
	}
	if s := summarise(nil); s != (stats{}) {
		t.Errorf("%+v", s)
	}
	if r := rate(1e9, 0); r != 0 {
		t.Errorf("a clock that stood still measured %g", r)
	}
}
