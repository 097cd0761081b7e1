package html

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/sample"
)

// burnt is a host whose cards were under load from 0:20 to 5:20; the second one throttles from 4:00 on.
func burnt() *facts.Host {
	h := switched()
	b := &facts.BurnIn{Quick: true, Asked: 300, Begin: 20, End: 320, Ended: facts.BurnDone, Abort: 90, Series: &sample.Series{}, Source: "t"}
	for i, c := range h.Cards {
		b.Cards = append(b.Cards, facts.BurnInCard{BDF: c.BDF, Kernel: "mma80", Rounds: 1000, Bytes: 20 << 30, Passes: 5000, TFLOPS: 160})
		t := &sample.Track{BDF: c.BDF}
		for at := 0; at <= 360; at += 2 {
			v := sample.NoValues()
			v[sample.Temperature], v[sample.Power], v[sample.PowerLimit], v[sample.CoreClock], v[sample.Reasons] = 35, 20, 450, 210, 1
			if at >= 20 && at <= 320 {
				v[sample.Temperature], v[sample.Power], v[sample.CoreClock], v[sample.Reasons] = 50+float64(at)/10+float64(i), 440, 2520, 0
			}
			if i == 1 && at >= 240 && at <= 320 {
				v[sample.Reasons], v[sample.CoreClock] = sample.ReasonSWThermal, 1800
			}
			if i == 2 && at == 100 {
				v[sample.Temperature] = math.NaN()
			}
			t.At, t.Values = append(t.At, time.Duration(at)*time.Second), append(t.Values, v)
		}
		b.Series.Cards = append(b.Series.Cards, t)
	}
	b.Series.Events = []sample.Event{{At: 200 * time.Second, Kind: "xid", Xid: 31, BDF: h.Cards[0].BDF, Text: "NVRM: Xid (PCI:0000:03:00): 31" + evil}}
	h.BurnIn = b
	return h
}

var (
	svgOf   = regexp.MustCompile(`(?s)<svg class="fit curve burn".*?</svg>`)
	tickOf  = regexp.MustCompile(`<text x="([\d.]+)" y="([\d.]+)" class="tick" text-anchor="end">([\d.]+)</text>`)
	cardOf  = regexp.MustCompile(`data-link="([0-9a-f:.]+)"><path d="([^"]+)"`)
	pointOf = regexp.MustCompile(`([ML])([\d.]+) ([\d.]+)`)
	heldOf  = regexp.MustCompile(`<g data-id="([0-9a-f:.]+)"><rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*class="bad"><title>([^<]+)</title>`)
)

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The curves are those of the series: read back by the axis that the picture itself shows, each point is a sample.
func TestBurnInCurvesAreTheSeries(t *testing.T) {
	h := burnt()
	page := pageOf(t, reportOf(h, "rig"), lang.En)
	plots := svgOf.FindAllString(page, -1)
	if len(plots) != 3 {
		t.Fatalf("%d plots", len(plots))
	}
	for i, m := range []sample.Metric{sample.Temperature, sample.Power, sample.CoreClock} {
		ticks := tickOf.FindAllStringSubmatch(plots[i], -1)
		y0, v0, y1, v1 := number(t, ticks[0][2])-4, number(t, ticks[0][3]), number(t, ticks[4][2])-4, number(t, ticks[4][3]) // words stand 4 below their line
		seen := map[string]int{}
		for _, l := range cardOf.FindAllStringSubmatch(plots[i], -1) {
			track := h.BurnIn.Series.Cards[len(seen)]
			points := pointOf.FindAllStringSubmatch(l[2], -1)
			seen[l[1]] = len(points)
			for _, p := range points {
				second := (number(t, p[2]) - timeX) / timeW * 360
				value := v0 + (number(t, p[3])-y0)/(y1-y0)*(v1-v0)
				k := int(math.Round(second / 2))
				if want := track.Values[k][m]; math.Abs(second-float64(2*k)) > 0.1 || math.Abs(value-want) > (v1-v0)*0.005 {
					t.Fatalf("%s of %s at %.1f s: drawn %.1f, sampled %.1f", m.Key(), l[1], second, value, want)
				}
			}
		}
		want := 181
		if m == sample.Temperature {
			want = 180 // one was not told
		}
		if len(seen) != 3 || seen[h.Cards[0].BDF] != 181 || seen[h.Cards[2].BDF] != want {
			t.Errorf("%s: points %v", m.Key(), seen)
		}
	}
	if n := strings.Count(cardOf.FindAllStringSubmatch(plots[0], -1)[2][2], "M"); n != 2 {
		t.Errorf("the line of a card with a gap has %d parts", n)
	}
	held := heldOf.FindAllStringSubmatch(plots[0], -1)
	if len(held) != 1 || held[0][1] != h.Cards[1].BDF || held[0][4] != h.Cards[1].BDF+" 4:00–5:20" {
		t.Errorf("held back: %v", held)
	}
	for _, want := range []string{"Xid 31", "fails above 85 °C", "stops at 90 °C", "300 s of load on 3 cards, 1320 W together", "too short to prove anything about heat soak"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("the kernel's words came through as markup")
	}
	if zh := pageOf(t, reportOf(h, "rig").In(lang.Zh), lang.Zh); !strings.Contains(zh, "温度曲线") || !strings.Contains(zh, "超过 85 °C 不通过") {
		t.Error("no Chinese")
	}
}

// Half an hour of eight cards stays small, and keeps its peak.
func TestBurnInStaysSmall(t *testing.T) {
	h := burnt()
	b := h.BurnIn
	b.End = 1820
	for _, track := range b.Series.Cards {
		track.At, track.Values = nil, nil
		for at := 0; at <= 1900; at += 2 {
			v := sample.NoValues()
			v[sample.Temperature], v[sample.Power], v[sample.CoreClock] = 70+10*math.Sin(float64(at)/60), 440, 2500
			if at == 1002 {
				v[sample.Temperature] = 93
			}
			track.At, track.Values = append(track.At, time.Duration(at)*time.Second), append(track.Values, v)
		}
	}
	for i := range 5 {
		track := *b.Series.Cards[0]
		track.BDF = fmt.Sprintf("0000:%x1:00.0", i+8)
		b.Series.Cards = append(b.Series.Cards, &track)
	}
	plots := svgOf.FindAllString(pageOf(t, reportOf(h, "rig"), lang.En), -1)
	if size := len(strings.Join(plots, "")); size > 120_000 {
		t.Errorf("%d bytes of curves", size)
	}
	lines := cardOf.FindAllStringSubmatch(plots[0], -1)
	if len(lines) != 8 || !strings.Contains(plots[0], "c0 dashed") {
		t.Fatalf("%d lines", len(lines))
	}
	top := math.Inf(1)
	for _, p := range pointOf.FindAllStringSubmatch(lines[0][2], -1) {
		top = min(top, number(t, p[3]))
	}
	ticks := tickOf.FindAllStringSubmatch(plots[0], -1)
	y0, v0, y1, v1 := number(t, ticks[0][2])-4, number(t, ticks[0][3]), number(t, ticks[4][2])-4, number(t, ticks[4][3]) // words stand 4 below their line
	if peak := v0 + (top-y0)/(y1-y0)*(v1-v0); math.Abs(peak-93) > 0.5 {
		t.Errorf("the peak is drawn at %.1f", peak)
	}
}
