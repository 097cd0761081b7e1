package rigsim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"preflight/internal/collect"
	"preflight/internal/facts"
)

// client is a bare SSH client: enough to run one command on a rig.
type client struct {
	fleet *Fleet
	rig   Rig
	shell string
	hasty bool // two seconds for nvidia-smi instead of sixty
}

func (c client) dial() (*ssh.Client, error) {
	raw, err := os.ReadFile(c.fleet.KeyPath)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(raw)
	if err != nil {
		return nil, err
	}
	check, err := knownhosts.New(c.fleet.KnownHosts)
	if err != nil {
		return nil, err
	}
	return ssh.Dial("tcp", c.rig.Addr, &ssh.ClientConfig{User: c.rig.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: check, Timeout: 10 * time.Second})
}

func (c client) Run(ctx context.Context, script []byte, stdout io.Writer) (collect.Access, error) {
	conn, err := c.dial()
	if err != nil {
		return collect.Access{}, err
	}
	defer func() { _ = conn.Close() }()
	s, err := conn.NewSession()
	if err != nil {
		return collect.Access{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if c.hasty {
		script = bytes.Replace(script, []byte("cmd/nvidia-smi-q.xml 60 "), []byte("cmd/nvidia-smi-q.xml 2 "), 1)
	}
	s.Stdin, s.Stdout = bytes.NewReader(script), stdout
	err = s.Run(or(c.shell, "exec /bin/sh -s"))
	return collect.Access{Root: "root"}, err
}

func serve(t *testing.T, specs ...Spec) *Fleet {
	t.Helper()
	f, err := Serve(t.Context(), t.TempDir(), specs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func collected(t *testing.T, c client) *facts.Snapshot {
	t.Helper()
	s, err := collect.Collect(t.Context(), c, collect.Request{Tool: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Manifest.Cut != "" {
		t.Fatalf("cut: %s", s.Manifest.Cut)
	}
	return s
}

// TestCollectedFacts runs the shipped collector on healthy rigs and reads the facts back.
func TestCollectedFacts(t *testing.T) {
	for name, c := range map[string]struct {
		spec    Spec
		sockets int
		chain   int
	}{
		"2 cards":             {Healthy("ws", 2), 1, 1},
		"4 cards":             {Healthy("frame", 4), 1, 1},
		"8 cards":             {Healthy("server", 8), 2, 1},
		"8 cards, 2 switches": {Spec{Name: "switched", Cards: 8, Switches: 2}, 2, 3},
		"AM5 x8/x8":           {Spec{Name: "desk", Cards: 2, Board: "am5", RAMGiB: 128}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, c.spec)
			snap := collected(t, client{fleet: f, rig: f.Rigs[0]})
			h := facts.FromSnapshot(snap)
			if replayed := facts.FromSnapshot(saved(t, snap)); !reflect.DeepEqual(replayed, h) {
				t.Error("the saved snapshot gives other facts than the live one")
			}
			if len(h.Cards) != c.spec.Cards {
				t.Fatalf("%d cards, want %d", len(h.Cards), c.spec.Cards)
			}
			for kind, why := range h.Gaps {
				if kind != facts.KindNCCL && kind != facts.KindLinkSample && kind != facts.KindBurnIn && kind != facts.KindDDP {
					t.Errorf("gap %s: %s", kind, why)
				}
			}
			if h.Kind.Value != "metal" || h.CPU.Sockets.Value != c.sockets || h.OS.Arch.Value != "x86_64" {
				t.Errorf("kind %v, sockets %v, arch %v", h.Kind, h.CPU.Sockets, h.OS.Arch)
			}
			if !h.Boot.UEFI.Value || h.Boot.SecureBoot.Or(true) || !h.IOMMU.On.Value {
				t.Errorf("boot %+v, IOMMU %+v", h.Boot, h.IOMMU)
			}
			if got := len(h.Slots); got != len(boards[f.spec(c.spec).Board].Ports) {
				t.Errorf("%d slots", got)
			}
			if h.Memory.InstalledMiB.Value != h.Memory.OnlineMiB.Value || h.Memory.InstalledMiB.Value == 0 {
				t.Errorf("memory %+v", h.Memory)
			}
			for _, card := range h.Cards {
				checkCard(t, card, c.chain)
			}
		})
	}
}

// saved is the snapshot as it comes back from an archive.
func saved(t *testing.T, s *facts.Snapshot) *facts.Snapshot {
	t.Helper()
	var buf bytes.Buffer
	if err := facts.Save(&buf, s); err != nil {
		t.Fatal(err)
	}
	out, err := facts.Load(&buf)
	if err != nil {
		t.Fatal(err)
	}
	for path, raw := range out.Files {
		if fullUUID.Match(raw) && path != "proc/sys/kernel/random/boot_id" {
			t.Errorf("%s still holds a UUID", path)
		}
	}
	return out
}

var fullUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// spec is a description with its defaults filled in.
func (f *Fleet) spec(s Spec) Spec {
	s.fill()
	return s
}

func checkCard(t *testing.T, c facts.Card, chain int) {
	t.Helper()
	if c.Slug.Value != "rtx-4090" || c.Driver.Value != "nvidia" || !c.ID.Known() || !c.Index.Known() {
		t.Errorf("%s: slug %v, driver %v, id %v", c.BDF, c.Slug, c.Driver, c.ID)
	}
	if len(c.Chain) != chain || c.PortType.Value != "legacy-endpoint" {
		t.Errorf("%s: chain %v, port type %v", c.BDF, c.Chain, c.PortType)
	}
	if c.BAR1MiB.Value != 32768 || len(c.ReBARMiB.Value) == 0 || c.MemoryMiB.Value != 24564 {
		t.Errorf("%s: BAR1 %v, sizes %v, memory %v", c.BDF, c.BAR1MiB, c.ReBARMiB, c.MemoryMiB)
	}
	if c.Link.Speed.Value != 2.5 || c.Link.MaxSpeed.Value != 16 || c.PState.Value != "P8" {
		t.Errorf("%s: link %+v, state %v", c.BDF, c.Link, c.PState)
	}
	if c.PowerLimit.Value != 450 || c.PowerDraw.Value <= 0 || c.MinUtil.Or(-1) != 0 {
		t.Errorf("%s: power %v %v, utilisation %v", c.BDF, c.PowerLimit, c.PowerDraw, c.MinUtil)
	}
}

// TestPlainUser: what the kernel keeps from a user is recorded as such, item by item.
func TestPlainUser(t *testing.T) {
	s := Healthy("ws", 2)
	s.User = true
	f := serve(t, s)
	snap := collected(t, client{fleet: f, rig: f.Rigs[0]})
	for name, want := range map[string]facts.Status{
		"sys/firmware/dmi/tables/DMI": facts.StatusDenied, "cmd/dmesg.txt": facts.StatusDenied, "proc/iomem": facts.StatusOK, "cmd/nvidia-smi-q.xml": facts.StatusOK,
	} {
		if it, ok := snap.Item(name); !ok || it.Status != want || it.Via != "user" {
			t.Errorf("%s: %+v, want %s", name, it, want)
		}
	}
	if snap.Manifest.UID != 1000 || snap.Manifest.Root != "none" {
		t.Errorf("uid %d, root %q", snap.Manifest.UID, snap.Manifest.Root)
	}
	h := facts.FromSnapshot(snap)
	for _, kind := range []facts.Kind{facts.KindConfig, facts.KindSMBIOS, facts.KindLog} {
		if h.Gaps[kind] == "" {
			t.Errorf("no gap for %s", kind)
		}
	}
	if len(h.Cards) != 2 || h.Cards[0].BAR1MiB.Value != 32768 {
		t.Errorf("what every user may read is missing: %+v", h.Cards)
	}
}

// TestShells: the same rig gives the same files with dash and with busybox, and nothing is left behind.
func TestShells(t *testing.T) {
	f := serve(t, Healthy("frame", 4))
	var names [][]string
	for _, shell := range []string{"exec /bin/sh -s", "exec busybox ash -s"} {
		if strings.Contains(shell, "busybox") && !installed("busybox") {
			t.Skip("busybox is not installed")
		}
		snap := collected(t, client{fleet: f, rig: f.Rigs[0], shell: shell})
		names = append(names, sortedKeys(snap.Files))
	}
	if len(names[0]) < 500 || strings.Join(names[0], "\n") != strings.Join(names[1], "\n") {
		t.Errorf("%d files with sh, %d with busybox", len(names[0]), len(names[1]))
	}
}

// TestHungSMI: a hung nvidia-smi costs one deadline, the rest arrives, and the channel closes.
func TestHungSMI(t *testing.T) {
	t.Parallel()
	f := serve(t, Spec{Name: "hung", Cards: 2, Faults: []Kind{SMIHang}})
	begin := time.Now()
	snap := collected(t, client{fleet: f, rig: f.Rigs[0], hasty: true})
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
	for _, name := range []string{"cmd/nvidia-smi-q.xml", "cmd/topo-m.txt", "cmd/gpu-samples.csv"} {
		if it, _ := snap.Item(name); it.Status != facts.StatusTimeout {
			t.Errorf("%s: %+v", name, it)
		}
	}
	if it, _ := snap.Item("cmd/topo-m.txt"); !strings.Contains(it.Detail, "skipped") || it.Millis != 0 {
		t.Errorf("a second hang was waited for: %+v", it)
	}
	if h := facts.FromSnapshot(snap); !h.Driver.SMIHung.Value || len(h.Cards) != 2 {
		t.Errorf("driver %+v", h.Driver)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	f := serve(t, Healthy("ws", 2))
	other := serve(t, Healthy("ws", 2))
	var keyErr *knownhosts.KeyError
	if _, err := (client{fleet: &Fleet{KeyPath: f.KeyPath, KnownHosts: other.KnownHosts}, rig: f.Rigs[0]}).dial(); !errors.As(err, &keyErr) {
		t.Errorf("an unknown host key was accepted: %v", err)
	}
	if _, err := (client{fleet: &Fleet{KeyPath: other.KeyPath, KnownHosts: f.KnownHosts}, rig: f.Rigs[0]}).dial(); err == nil {
		t.Error("a stranger's key was accepted")
	}
}

func TestSpecsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"no cards":        {Spec{Name: "x"}, "0 cards"},
		"too many":        {Spec{Name: "x", Cards: 9}, "9 cards"},
		"unknown board":   {Spec{Name: "x", Cards: 2, Board: "abacus"}, "unknown board"},
		"unknown GPU":     {Spec{Name: "x", Cards: 2, GPU: "voodoo"}, "unknown GPU"},
		"too few slots":   {Spec{Name: "x", Cards: 4, Board: "am5"}, "has 2 slots"},
		"unknown fault":   {Spec{Name: "x", Cards: 2, Faults: []Kind{"gremlins"}}, "unknown fault"},
		"no such switch":  {Spec{Name: "x", Cards: 2, Board: "am5", Switches: 3}, "3 switches"},
		"negative number": {Spec{Name: "x", Cards: -1}, "-1 cards"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Build(t.TempDir(), c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
