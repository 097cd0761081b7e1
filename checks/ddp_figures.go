package checks

import (
	"preflight/internal/facts"
	"preflight/internal/sample"
)

// DDPFigure is a scaling test in a few numbers.
type DDPFigure struct {
	Parameters int64      `json:"parameters,omitempty"`
	Ended      string     `json:"ended"` // done, hang, error …
	Stages     []DDPShare `json:"stages"`
}

// DDPShare is one number of cards: for one card the slowest of them.
type DDPShare struct {
	Cards         int     `json:"cards"`
	Step          float64 `json:"step_ms"`
	NoSync        float64 `json:"no_sync_ms"`
	SpeedUp       float64 `json:"speed_up"`
	Efficiency    float64 `json:"efficiency"`      // share of linear
	Communication float64 `json:"communication"`   // share of a step
	Busy          float64 `json:"busy,omitempty"`  // mean utilisation, %
	Watts         float64 `json:"watts,omitempty"` // of the cards at work, together, mean
	PeakMiB       int64   `json:"peak_mib,omitempty"`
}

// ddpFigure is nil where nothing was trained.
func ddpFigure(s Subject) *DDPFigure {
	d := s.Host.DDP
	if d == nil || len(d.Stages) == 0 {
		return nil
	}
	out := &DDPFigure{Parameters: d.Parameters, Ended: d.Ended, Stages: []DDPShare{}}
	single := DDPShare{Cards: 1, SpeedUp: 1, Efficiency: 1}
	for _, st := range d.Stages {
		if st.Step <= 0 {
			continue
		}
		busy, watts := whileTraining(d, st)
		if len(st.Cards) == 1 {
			if st.Step > single.Step {
				single.Step, single.NoSync, single.PeakMiB, single.Busy, single.Watts = st.Step, st.Step, st.Peak, busy, watts
			}
			continue
		}
		n := float64(len(st.Cards))
		share := DDPShare{Cards: len(st.Cards), Step: st.Step, NoSync: st.NoSync, Communication: max(0, (st.Step-st.NoSync)/st.Step), Busy: busy, Watts: watts, PeakMiB: st.Peak}
		if one := stepAlone(d, st.Cards); one > 0 {
			share.SpeedUp, share.Efficiency = n*one/st.Step, one/st.Step
		}
		out.Stages = append(out.Stages, share)
	}
	if single.Step > 0 {
		out.Stages = append([]DDPShare{single}, out.Stages...)
	}
	return out
}

// whileTraining is how busy the cards of a stage were, %, and what they drew together, W.
func whileTraining(d *facts.DDP, st facts.DDPStage) (busy, watts float64) {
	if d.Series == nil {
		return 0, 0
	}
	cards := 0.0
	for _, t := range d.Series.Cards {
		for _, c := range st.Cards {
			if c != t.BDF {
				continue
			}
			span := burnTrack{bdf: t.BDF, seconds: st.End}
			for i, at := range t.At {
				if sec := at.Seconds(); sec >= st.Begin && sec <= st.End {
					span.at, span.values = append(span.at, sec), append(span.values, t.Values[i])
				}
			}
			if u, ok := span.mean(sample.Utilization); ok {
				busy, cards = busy+u, cards+1
			}
			watts += given(span.mean(sample.Power))
		}
	}
	return busy / max(cards, 1), watts
}
