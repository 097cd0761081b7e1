package sample

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const fields = "F timestamp,index,pci.bus_id,name,pstate,power.draw,enforced.power.limit,temperature.gpu,temperature.memory,clocks.sm,clocks.mem,clocks_event_reasons.active,fan.speed,pcie.link.gen.current,pcie.link.width.current,ecc.errors.uncorrected.volatile.total,utilization.gpu,memory.used,memory.total"

func value(v Values, m Metric) any {
	if x, ok := v.Get(m); ok {
		return x
	}
	return "absent"
}

func TestLine(t *testing.T) {
	var p Parser
	if it := p.Line("S 2026/12/01 10:22:11.123, 0, 00000000:21:00.0"); it != nil {
		t.Errorf("a sample before its columns: %+v", it)
	}
	p.Line(fields)
	c := p.Line("S 2026/12/01 10:22:11.123, 1, 00000000:C1:00.0, NVIDIA GeForce RTX 4090, P2, 431.20, 450.00, 71, N/A, 2520, 10251, 0x0000000000000004, 62, 4, 16, [N/A], 100, 20480, 24564").Card
	if c == nil || c.BDF != "0000:c1:00.0" || c.Index != 1 || c.Name != "GeForce RTX 4090" || c.Lost || c.At.Format("15:04:05.000") != "10:22:11.123" {
		t.Fatalf("%+v", c)
	}
	for m, want := range map[Metric]any{Power: 431.2, PowerLimit: 450.0, Temperature: 71.0, MemoryTemp: "absent", CoreClock: 2520.0, Reasons: 4.0, Fan: 62.0, LinkGen: 4.0, LinkWidth: 16.0, ECC: "absent", Utilization: 100.0, MemoryUsed: 20480.0} {
		if got := value(c.Values, m); got != want {
			t.Errorf("%s: %v, want %v", m.Key(), got, want)
		}
	}
	if !c.Values.Has(ReasonPowerCap) || c.Values.Has(ReasonBad) {
		t.Error("reasons are misread")
	}
	sick := p.Line("S 2026/12/01 10:22:13.123, 1, 00000000:C1:00.0, NVIDIA GeForce RTX 4090, [Unknown Error], [GPU is lost], [N/A], 9999, nan, -5, inf, 0xzz, [Unknown Error], 0, 99, 1, 101, 1, 1").Card
	if sick == nil || !sick.Lost {
		t.Fatalf("%+v", sick)
	}
	for _, m := range []Metric{Power, PowerLimit, Temperature, MemoryTemp, CoreClock, MemoryClock, Reasons, Fan, LinkGen, LinkWidth, Utilization} {
		if got := value(sick.Values, m); got != "absent" {
			t.Errorf("%s of a sick card: %v", m.Key(), got)
		}
	}
	if it := p.Line("S 2026/12/01 10:22:13.123, 1, ../../etc, x"); it != nil {
		t.Errorf("a card of no address: %+v", it)
	}
}

// Old drivers know other names; the columns decide, not their places.
func TestOldColumns(t *testing.T) {
	var p Parser
	p.Line("F timestamp,pci.bus_id,clocks_throttle_reasons.active,power.draw")
	c := p.Line("S 2019/01/02 03:04:05.000, 00000000:01:00.0, 0x0000000000000008, 120.55").Card
	if c == nil || !c.Values.Has(ReasonHWSlowdown) || value(c.Values, Power) != 120.55 || c.Index != -1 {
		t.Errorf("%+v", c)
	}
}

func TestOtherLines(t *testing.T) {
	var p Parser
	for line, want := range map[string]Item{
		"K NVRM: Xid (PCI:0000:81:00): 79, pid=4711, GPU has fallen off the bus.":          {Kernel: &Kernel{Xid: 79, BDF: "0000:81:00.0", Text: "NVRM: Xid (PCI:0000:81:00): 79, pid=4711, GPU has fallen off the bus."}},
		"K pcieport 0000:40:01.1: AER: Corrected error message received from 0000:41:00.0": {Kernel: &Kernel{BDF: "0000:40:01.1", Text: "pcieport 0000:40:01.1: AER: Corrected error message received from 0000:41:00.0"}},
		"B Inlet Temp,24,degrees C":                                   {Sensor: &Sensor{"Inlet Temp", 24, "degrees C"}},
		"E Unable to determine the device handle for GPU0000:81:00.0": {Ended: "Unable to determine the device handle for GPU0000:81:00.0"},
		"N the log cannot be read":                                    {Note: "the log cannot be read"},
	} {
		if got := p.Line(line); got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if it := p.Line("C 61250"); it == nil || it.CPU == nil || *it.CPU != 61.25 {
		t.Errorf("%+v", it)
	}
	for _, line := range []string{"", "X", "C hot", "C 1e300", "B a,b,c", "B only", "E ", "S", "Z 1"} {
		if it := p.Line(line); it != nil {
			t.Errorf("%q says %+v", line, it)
		}
	}
}

// A series that is written is read back as it was; what was absent stays absent, and what does not fit is refused.
func TestSeries(t *testing.T) {
	var p Parser
	var s Series
	for _, l := range []string{
		"F timestamp,pci.bus_id,temperature.gpu,power.draw",
		"S 2026/12/01 10:00:00.000, 00000000:81:00.0, 41, 60.04",
		"C 50000",
		"S 2026/12/01 10:00:00.010, 00000000:21:00.0, 40, [N/A]",
		"K NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus.",
		"S 2026/12/01 10:00:02.000, 00000000:21:00.0, 45, 300.51",
		"S 2026/12/01 09:00:00.000, 00000000:21:00.0, 45, 1",
		"B Inlet Temp,23.5,degrees C", "B PS1 Input Power,740,Watts", "B Inlet Temp,24,degrees C",
		"E nvidia-smi ended", "E nvidia-smi ended",
	} {
		if it := p.Line(l); it != nil {
			s.Add(*it)
		}
	}
	raw, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	var back Series
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Cards) != 2 || back.Cards[0].BDF != "0000:21:00.0" || len(back.Cards[0].At) != 2 || back.Cards[0].At[1] != 2*time.Second {
		t.Fatalf("%s", raw)
	}
	if got := back.Cards[0].Column(Power); !math.IsNaN(got[0]) || got[1] != 300.5 {
		t.Errorf("power %v", got)
	}
	if len(back.Events) != 2 || back.Events[0].Xid != 79 || back.Events[0].At != 10*time.Millisecond || back.Events[1].Kind != "smi" {
		t.Errorf("events %+v", back.Events)
	}
	if len(back.CPU) != 1 || back.CPU[0].Value != 50 {
		t.Errorf("CPU %+v", back.CPU)
	}
	if len(back.BMC) != 2 || back.BMC[0].Name != "Inlet Temp" || len(back.BMC[0].Points) != 2 || back.BMC[0].Points[0].Value != 23.5 || back.BMC[1].Unit != "Watts" {
		t.Errorf("BMC %+v", back.BMC)
	}
	var absurd Series
	if err := json.Unmarshal([]byte(`{"schema":"preflight/samples/v1","cards":[{"bdf":"x","steps_ms":[0],"tenths":{"temperature":[10000000000],"power":[-5]}}]}`), &absurd); err != nil || value(absurd.Cards[0].Values[0], Temperature) != "absent" || value(absurd.Cards[0].Values[0], Power) != "absent" {
		t.Errorf("%v: %+v", err, absurd.Cards[0].Values)
	}
	if strings.Contains(string(raw), "memory_temperature") {
		t.Errorf("a column of nothing is written: %s", raw)
	}
	for _, bad := range []string{
		`{"schema":"preflight/samples/v1","cards":[],"bmc":[{"name":"x","unit":"W","steps_ms":[0],"tenths":[]}]}`,
		`{}`, `{"schema":"preflight/samples/v2"}`, `[]`,
		`{"schema":"preflight/samples/v1","cards":[{"bdf":"x","steps_ms":[0,1],"tenths":{"power":[1]}}]}`,
		`{"schema":"preflight/samples/v1","cpu":{"steps_ms":[0],"tenths":[]}}`,
	} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// here runs the reader on this machine, in front of stand-ins.
type here struct {
	sh  []string
	env []string
}

func (h here) Talk(ctx context.Context, script []byte, talk func(io.WriteCloser, io.Reader) error) error {
	cmd := exec.CommandContext(ctx, h.sh[0], append(h.sh[1:], "-c", string(script))...)
	cmd.Env = h.env
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return err
	}
	err := talk(in, out)
	_ = in.Close()
	return errors.Join(err, cmd.Wait())
}

const smi = `#!/bin/sh
echo "$*" >>"$PREFLIGHT_ROOT/calls"
case "$*" in
*clocks_event_reasons*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
*temperature.memory*) echo 'Field "temperature.memory" is not a valid field to query.'; exit 2 ;;
*" -l 1") ;;
*) exit 0 ;;
esac
echo $$ >>"$PREFLIGHT_ROOT/pids"
[ -e "$PREFLIGHT_ROOT/once" ] && limit=1 || limit=1000
i=0
while [ $i -lt $limit ]; do
	i=$((i + 1))
	for c in 21 C1; do echo "2026/12/01 10:00:0$i.000, 0, 00000000:$c:00.0, NVIDIA X, P0, 100.00, 450.00, 50, 2000, 10000, 0x4, 30, 4, 16, 0, 99, 10, 24564"; done
	sleep 1
done
echo "Unable to determine the device handle for GPU0000:C1:00.0: GPU is lost.  Reboot the system to recover this GPU"
exit 15
`

// The reader in each shell: it agrees with an old driver about the columns, keeps one nvidia-smi running, tells the kernel's
// new lines and not the old ones, and leaves no process.
func TestReader(t *testing.T) {
	for _, sh := range []string{"dash", "busybox ash", "bash"} {
		t.Run(sh, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(strings.Fields(sh)[0]); err != nil {
				t.Skipf("%s is not installed", sh)
			}
			root := host(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var s Series
			enough := errors.New("enough")
			err := Read(ctx, here{strings.Fields(sh), []string{"PATH=" + root + "/bin:/usr/bin:/bin", "PREFLIGHT_ROOT=" + root}}, time.Second, func(it Item) error {
				s.Add(it)
				if len(s.Cards) == 2 && len(s.Cards[0].At) >= 3 && len(s.Events) > 0 {
					return enough
				}
				return nil
			})
			if !errors.Is(err, enough) {
				t.Fatalf("%v: %+v", err, s)
			}
			if len(s.Events) != 1 || s.Events[0].Xid != 79 || s.Events[0].BDF != "0000:c1:00.0" {
				t.Errorf("events %+v", s.Events)
			}
			if len(s.CPU) < 2 || s.CPU[0].Value != 55 {
				t.Errorf("CPU %+v", s.CPU)
			}
			if v := s.Cards[0].Values[0]; value(v, MemoryTemp) != "absent" || value(v, CoreClock) != 2000.0 || !v.Has(ReasonPowerCap) {
				t.Errorf("the columns of an old driver are misread: %v", v)
			}
			calls, _ := os.ReadFile(filepath.Join(root, "calls"))
			if n := strings.Count(string(calls), "\n"); n != 4 { // three to agree, one for all samples
				t.Errorf("%d calls of nvidia-smi:\n%s", n, calls)
			}
			gone(t, root)
		})
	}
}

// host is a root with stand-ins, a kernel log with an old and a new Xid, and a processor of 55 °C.
func host(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"bin/nvidia-smi":                     smi,
		"dev/kmsg":                           "4,1,50000000,-;NVRM: Xid (PCI:0000:21:00): 31, old\n6,2,150000000,-;usb 1-1: new device\n4,3,150000001,-;NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus.\n",
		"proc/uptime":                        "100.00 200.00\n",
		"sys/class/hwmon/hwmon0/name":        "nvme\n",
		"sys/class/hwmon/hwmon1/name":        "k10temp\n",
		"sys/class/hwmon/hwmon1/temp1_input": "55000\n",
	} {
		full := filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// gone waits until the stand-in's process is no more.
func gone(t *testing.T, root string) {
	t.Helper()
	pids, err := os.ReadFile(filepath.Join(root, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		for i := 0; ; i++ {
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			if i > 100 {
				t.Errorf("nvidia-smi still runs as %s", pid)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// An nvidia-smi that dies is told with what it said, and another is begun.
func TestReaderBeginsAnew(t *testing.T) {
	t.Parallel()
	root := host(t)
	if err := os.WriteFile(filepath.Join(root, "once"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var said []string
	samples := 0
	enough := errors.New("enough")
	err := Read(ctx, here{[]string{"sh"}, []string{"PATH=" + root + "/bin:/usr/bin:/bin", "PREFLIGHT_ROOT=" + root}}, time.Second, func(it Item) error {
		if it.Ended != "" {
			said = append(said, it.Ended)
		}
		if it.Card != nil {
			samples++
		}
		if samples == 4 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || len(said) < 2 || !strings.Contains(said[0], "GPU is lost") {
		t.Errorf("%v %q", err, said)
	}
}

func FuzzLine(f *testing.F) {
	f.Add(fields + "\nS 2026/12/01 10:22:11.123, 1, 00000000:C1:00.0, X, P2, 431.20\nK NVRM: Xid (PCI:0000:81:00): 79, x\nC 1\nB a,1,Watts\nE x\nN y\n")
	f.Fuzz(func(t *testing.T, text string) {
		var p Parser
		var s Series
		for l := range strings.Lines(text) {
			if it := p.Line(l); it != nil {
				s.Add(*it)
			}
		}
		raw, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		var back Series
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
	})
}

func FuzzSeries(f *testing.F) {
	f.Add([]byte(`{"schema":"preflight/samples/v1","cards":[{"bdf":"x","steps_ms":[0,1],"tenths":{"power":[1,null]}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s Series
		_ = json.Unmarshal(raw, &s)
	})
}
