package html

import (
	"strings"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/sample"
)

// A scaling test stands on the page as rows, and as the cards' utilisation with the time in which they trained together.
func TestScalingOnThePage(t *testing.T) {
	h := switched()
	d := &facts.DDP{Ended: facts.DDPDone, Parameters: 350e6, Gradient: 1.4e9, Series: &sample.Series{}, Source: "t"}
	var names []string
	for i, c := range h.Cards {
		names = append(names, c.BDF)
		d.Stages = append(d.Stages, facts.DDPStage{Cards: []string{c.BDF}, Step: 100, NoSync: 100, Begin: float64(10 * i), End: float64(10*i + 10)})
		track := &sample.Track{BDF: c.BDF}
		for at := 0; at <= 60; at += 2 {
			v := sample.NoValues()
			if v[sample.Utilization] = 0; at >= 30 || at/10 == i {
				v[sample.Utilization] = 98
			}
			track.At, track.Values = append(track.At, time.Duration(at)*time.Second), append(track.Values, v)
		}
		d.Series.Cards = append(d.Series.Cards, track)
	}
	d.Stages = append(d.Stages, facts.DDPStage{Cards: names, Step: 150, NoSync: 101, Begin: 30, End: 60})
	h.DDP = d
	page := pageOf(t, reportOf(h, "rig"), lang.En)
	for _, want := range []string{"Training on one card and on several", "<td>150.0 ms</td><td>101.0 ms</td><td>2.00×</td><td>67 %</td><td>33 %</td><td>98 %</td>", "Utilisation over time"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	plot := svgOf.FindString(page)
	if band := `<rect x="264" y="12" width="220" height="150" rx="3" class="band">`; !strings.Contains(plot, band) || len(cardOf.FindAllString(plot, -1)) != 3 {
		t.Errorf("no band from the middle on, or no line for each card: %.600s", plot)
	}
	if strings.Contains(pageOf(t, reportOf(switched(), "rig"), lang.En), "Training on one card") {
		t.Error("a rig on which nothing was trained shows a training")
	}
}
