package watch

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"preflight/internal/sample"
)

var now = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

// card is a sound card at work; set changes some of its values.
func card(bdf string, set map[sample.Metric]float64) sample.Item {
	v := sample.NoValues()
	for m, x := range map[sample.Metric]float64{
		sample.Power: 400, sample.PowerLimit: 450, sample.Temperature: 65, sample.CoreClock: 2520, sample.Utilization: 98,
		sample.LinkGen: 4, sample.LinkWidth: 16, sample.MemoryUsed: 20480, sample.MemoryTotal: 24564, sample.Reasons: sample.ReasonPowerCap,
	} {
		v[m] = x
	}
	for m, x := range set {
		v[m] = x
	}
	return sample.Item{Card: &sample.Card{At: now, BDF: bdf, Name: "GeForce RTX 4090", Index: int(bdf[5]), Values: v}}
}

// rig is a live rig that said some things.
func rig(items ...sample.Item) Rig {
	f := New([]string{"node-a"}, func() time.Time { return now })
	f.Enter(0, Live, "")
	for _, it := range items {
		f.Hear(0, it)
	}
	return f.Rigs()[0]
}

func texts(signs []Sign) string {
	var out []string
	for _, s := range signs {
		out = append(out, strings.TrimSpace(s.Card+" "+s.Text))
	}
	return strings.Join(out, "; ")
}

func TestSigns(t *testing.T) {
	const a, b = "0000:01:00.0", "0000:21:00.0"
	xid := sample.Item{Kernel: &sample.Kernel{Xid: 79, BDF: b, Text: "x"}}
	for name, tc := range map[string]struct {
		rig   Rig
		level Level
		want  string
	}{
		"sound, at its power limit":   {rig(card(a, nil), card(b, nil)), Well, ""},
		"hot":                         {rig(card(a, map[sample.Metric]float64{sample.Temperature: 86})), Bad, a + " 86 °C"},
		"warm":                        {rig(card(a, map[sample.Metric]float64{sample.Temperature: 81})), Look, a + " 81 °C"},
		"at the line":                 {rig(card(a, map[sample.Metric]float64{sample.Temperature: 80})), Well, ""},
		"slowed by heat":              {rig(card(a, map[sample.Metric]float64{sample.Reasons: sample.ReasonHWThermal | sample.ReasonHWSlowdown})), Bad, a + " slowed by heat"},
		"power brake":                 {rig(card(a, map[sample.Metric]float64{sample.Reasons: sample.ReasonPowerBrake | sample.ReasonHWSlowdown})), Bad, a + " slowed by a power brake: supply or board"},
		"hot memory":                  {rig(card(a, map[sample.Metric]float64{sample.MemoryTemp: 100})), Look, a + " memory 100 °C"},
		"wrong bits":                  {rig(card(a, map[sample.Metric]float64{sample.ECC: 2})), Bad, a + " 2 uncorrected memory errors"},
		"a link that fell":            {rig(card(a, nil), card(a, map[sample.Metric]float64{sample.LinkWidth: 8})), Bad, a + " link fell from x16 to x8"},
		"a link that was narrow":      {rig(card(a, map[sample.Metric]float64{sample.LinkWidth: 8})), Well, ""},
		"an Xid":                      {rig(card(a, nil), card(b, nil), xid, xid), Bad, b + " Xid 79"},
		"an Xid of a card never seen": {rig(card(a, nil), xid), Bad, b + " Xid 79"},
		"one idles":                   {rig(card(a, nil), card(b, map[sample.Metric]float64{sample.Utilization: 0})), Look, b + " idles while the others work: a hang?"},
		"all idle":                    {rig(card(a, map[sample.Metric]float64{sample.Utilization: 0}), card(b, map[sample.Metric]float64{sample.Utilization: 0})), Well, ""},
		"one alone idles":             {rig(card(a, map[sample.Metric]float64{sample.Utilization: 0})), Well, ""},
		"the driver is gone":          {rig(sample.Item{Ended: "NVIDIA-SMI has failed"}), Bad, "NVIDIA-SMI has failed"},
		"it ended after samples":      {rig(card(a, nil), sample.Item{Ended: "GPU is lost"}), Bad, "GPU is lost"},
		"it came back":                {rig(card(a, nil), sample.Item{Ended: "GPU is lost"}, card(a, nil)), Well, ""},
		"links complain":              {rig(card(a, nil), sample.Item{Kernel: &sample.Kernel{Text: "AER"}}), Look, "the kernel tells an error of a link"},
		"nothing is told":             {rig(sample.Item{Card: &sample.Card{At: now, BDF: a, Values: sample.NoValues()}}), Well, ""},
	} {
		got := DefaultPolicy(2*time.Second).Signs(tc.rig, now)
		if Worst(got) != tc.level || texts(got) != tc.want {
			t.Errorf("%s: %d %q, want %d %q", name, Worst(got), texts(got), tc.level, tc.want)
		}
	}
}

// Time passes: a card that is missing beside its neighbours is lost, and a rig without samples hangs.
func TestSilence(t *testing.T) {
	at := now
	f := New([]string{"node-a"}, func() time.Time { return at })
	p := DefaultPolicy(2 * time.Second)
	if s := p.Signs(f.Rigs()[0], now); len(s) != 0 {
		t.Errorf("while connecting: %v", s)
	}
	f.Enter(0, Live, "")
	f.Hear(0, card("0000:01:00.0", nil))
	f.Hear(0, card("0000:21:00.0", nil))
	at = now.Add(20 * time.Second)
	f.Hear(0, card("0000:01:00.0", nil))
	if got := texts(p.Signs(f.Rigs()[0], at)); got != "0000:21:00.0 lost: the driver no longer answers for it" {
		t.Errorf("%q", got)
	}
	if got := texts(p.Signs(f.Rigs()[0], at.Add(time.Minute))); !strings.HasPrefix(got, "no sample for 1m0s: nvidia-smi hangs or died") {
		t.Errorf("%q", got)
	}
	f.Enter(0, Away, "connection refused")
	if got := texts(p.Signs(f.Rigs()[0], at)); got != "not reached: connection refused" {
		t.Errorf("%q", got)
	}
}

// Frames: trouble first, the well folded, no line wider than the terminal, and no more of them than it has.
func TestFrame(t *testing.T) {
	f := New([]string{"node-a", "node-b", "node-c"}, func() time.Time { return now })
	for i := range 2 {
		f.Enter(i, Live, "")
		f.Hear(i, card("0000:01:00.0", nil))
		f.Hear(i, card("0000:21:00.0", map[sample.Metric]float64{sample.Temperature: 70}))
	}
	f.Hear(1, card("0000:21:00.0", map[sample.Metric]float64{sample.Temperature: 91}))
	v := View{Policy: DefaultPolicy(2 * time.Second)}
	got := strings.Join(v.Frame(f.Rigs(), now), "\n")
	want := `10:00:00  3 rigs, 4 cards  ✗ 1  ✓ 1  1 connecting
✗ node-b  2× GeForce RTX 4090  98 %  40 of 48 GiB  800 of 900 W  65–91 °C
    01:00.0   98 %   20.0/24.0 GiB  400/450 W   65 °C          –  2520 MHz  Gen4 x16  at its power limit
    21:00.0   98 %   20.0/24.0 GiB  400/450 W   91 °C          –  2520 MHz  Gen4 x16  91 °C
✓ node-a  2× GeForce RTX 4090  98 %  40 of 48 GiB  800 of 900 W  65–70 °C
… node-c  connecting for 0s`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	v.Rows, v.Columns = 5, 40
	small := v.Frame(f.Rigs(), now)
	if len(small) > 4 || !strings.Contains(strings.Join(small, "\n"), "… and 1 more") {
		t.Errorf("%d lines:\n%s", len(small), strings.Join(small, "\n"))
	}
	for _, l := range small {
		if n := len([]rune(l)); n > 39 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

// Many rigs, drawn at once, stay within the terminal.
func TestFrameOfMany(t *testing.T) {
	names := make([]string, 300)
	f := New(names, func() time.Time { return now })
	for i := range names {
		f.Enter(i, Away, "timeout")
	}
	if n := len((View{Policy: DefaultPolicy(time.Second), Rows: 24, Columns: 80}).Frame(f.Rigs(), now)); n > 23 {
		t.Errorf("%d lines on a terminal of 24", n)
	}
}

func TestRecord(t *testing.T) {
	var b bytes.Buffer
	r := NewRecorder(&b, "csv")
	xid := sample.Item{Kernel: &sample.Kernel{Xid: 31, BDF: "0000:01:00.0", Text: "NVRM: Xid"}}
	for _, it := range []sample.Item{card("0000:01:00.0", nil), xid, card("0000:01:00.0", map[sample.Metric]float64{sample.Power: 401.5})} {
		if err := r.Hear(`node "a",b`, now, it); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 3 || rows[2][1] != `node "a",b` || rows[2][4] != "401.5" || rows[0][4] != "power_w" || rows[1][7] != "" || rows[0][7] != "memory_temperature_celsius" {
		t.Errorf("%v %v", err, rows)
	}
	b.Reset()
	r = NewRecorder(&b, "")
	for _, it := range []sample.Item{card("0000:01:00.0", nil), xid, {Note: "n"}, {Ended: "e"}, {Sensor: &sample.Sensor{Name: "Inlet", Value: 24, Unit: "degrees C"}}} {
		if err := r.Hear("node-a", now, it); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for l := range strings.Lines(b.String()) {
		var o map[string]any
		if err := json.Unmarshal([]byte(l), &o); err != nil {
			t.Fatal(err)
		}
		if _, absent := o["memory_temperature_celsius"]; absent {
			t.Error("what was absent is written")
		}
		kinds = append(kinds, o["type"].(string))
	}
	if got := strings.Join(kinds, " "); got != "sample kernel note ended sensor" {
		t.Error(got)
	}
}

// What Prometheus' own parser reads of an exposition; a rig that is away gives no old values.
func TestExposition(t *testing.T) {
	f := New([]string{"node-a", "node \"b\""}, func() time.Time { return now })
	for i := range 2 {
		f.Enter(i, Live, "")
		f.Hear(i, card("0000:01:00.0", nil))
	}
	f.Enter(1, Away, "gone")
	var b bytes.Buffer
	if err := Exposition(&b, f.Rigs()); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&b)
	if err != nil {
		t.Fatal(err)
	}
	up := families["preflight_watch_up"].GetMetric()
	if len(up) != 2 || up[0].GetGauge().GetValue() != 1 || up[1].GetGauge().GetValue() != 0 || up[1].GetLabel()[0].GetValue() != `node "b"` {
		t.Errorf("up: %v", up)
	}
	power := families["preflight_card_power_w"].GetMetric()
	if len(power) != 1 || power[0].GetGauge().GetValue() != 400 {
		t.Errorf("power: %v", power)
	}
	if _, ok := families["preflight_card_memory_temperature_celsius"]; ok {
		t.Error("what no card tells is exposed")
	}
}
