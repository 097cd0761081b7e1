package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"preflight/checks"
	"preflight/internal/facts"
)

// metric is one family of the textfile that node_exporter reads: gauges, since each run replaces the file.
type metric struct {
	name, help string
	values     func(r *Report) []reading
}

// reading is one value with its labels, name and value in turn.
type reading struct {
	labels []string
	value  float64
}

// metrics are all families, in the order of the file. Units are Prometheus' base units: seconds, bytes.
var metrics = []metric{
	{"preflight_build_info", "The version that made this file.", func(r *Report) []reading {
		return []reading{{[]string{"version", r.Tool.Version}, 1}}
	}},
	{"preflight_run_timestamp_seconds", "When the run began, Unix time.", func(r *Report) []reading {
		return []reading{{nil, float64(r.Run.At.Unix())}}
	}},
	{"preflight_run_duration_seconds", "How long the run took.", func(r *Report) []reading {
		return []reading{{nil, r.Run.Seconds}}
	}},
	{"preflight_run_exit_code", "Exit code of the run: 0 good, 3 a fail, 4 a required unknown or an unreachable rig.", func(r *Report) []reading {
		return []reading{{nil, float64(r.Run.Exit)}}
	}},
	{"preflight_rig_reachable", "1 when the rig gave its facts.", eachRig(func(g Rig) []reading {
		return []reading{{nil, yes(g.Error == nil)}}
	})},
	{"preflight_rig_verdict", "1 for the verdict that the rig has.", eachRig(func(g Rig) []reading {
		return oneOf(g.Verdict)
	})},
	{"preflight_check_verdict", "1 for the verdict that the check has on the rig, the worst of its findings.", eachRig(func(g Rig) []reading {
		var out []reading
		for _, list := range byCheck(g.Findings) {
			out = append(out, reading{[]string{"check", list[0].Check, "verdict", string(worstOf(list))}, 1})
		}
		return out
	})},
	{"preflight_check_required", "1 when an unknown of the check counts against the rig.", eachRig(func(g Rig) []reading {
		var out []reading
		for _, id := range g.Required {
			out = append(out, reading{[]string{"check", id}, 1})
		}
		return out
	})},
	{"preflight_card_pcie_lanes", "Lanes of the card's link now.", eachCard(func(c facts.Card) (float64, bool) {
		return float64(c.Link.Width.Value), c.Link.Width.Known()
	})},
	{"preflight_card_bar1_bytes", "Size of the card's BAR1.", eachCard(func(c facts.Card) (float64, bool) {
		return float64(c.BAR1MiB.Value) * (1 << 20), c.BAR1MiB.Known()
	})},
	{"preflight_nccl_busbw_bytes_per_second", "Best bus bandwidth of each all-reduce that was measured.", eachRig(func(g Rig) []reading {
		return busbw(g.Host)
	})},
}

// WritePrometheus writes the text format 0.0.4 for node_exporter's textfile collector.
func WritePrometheus(w io.Writer, r *Report) error {
	var b strings.Builder
	for _, m := range metrics {
		values := m.values(r)
		if len(values) == 0 {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name)
		for _, v := range values {
			fmt.Fprintf(&b, "%s%s %s\n", m.name, labels(v.labels), strconv.FormatFloat(v.value, 'f', -1, 64))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func labels(pairs []string) string {
	if len(pairs) == 0 {
		return ""
	}
	var parts []string
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	for i := 0; i+1 < len(pairs); i += 2 {
		parts = append(parts, pairs[i]+`="`+escape.Replace(strings.ToValidUTF8(pairs[i+1], "\uFFFD"))+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// eachRig makes the samples of every rig carry its name.
func eachRig(of func(Rig) []reading) func(*Report) []reading {
	return func(r *Report) []reading {
		var out []reading
		for _, g := range r.Rigs {
			for _, s := range of(g) {
				out = append(out, reading{append([]string{"rig", g.Name}, s.labels...), s.value})
			}
		}
		return out
	}
}

func eachCard(of func(facts.Card) (float64, bool)) func(*Report) []reading {
	return eachRig(func(g Rig) []reading {
		if g.Host == nil {
			return nil
		}
		var out []reading
		for _, c := range g.Host.Cards {
			if v, known := of(c); known { // an absent fact has no value: never 0
				out = append(out, reading{[]string{"card", c.BDF}, v})
			}
		}
		return out
	})
}

func busbw(h *facts.Host) []reading {
	if h == nil {
		return nil
	}
	best := map[string]float64{}
	var order [][]string
	for _, run := range h.NCCL {
		pairs := []string{"engine", run.Engine, "layout", run.Layout, "p2p", strconv.FormatBool(!run.NoP2P), "ranks", strconv.Itoa(run.Ranks)}
		key := strings.Join(pairs, "\x00")
		if _, seen := best[key]; !seen && len(run.Rows) > 0 {
			order = append(order, pairs)
		}
		for _, row := range run.Rows {
			best[key] = max(best[key], row.BusBW*1e9)
		}
	}
	var out []reading
	for _, pairs := range order {
		out = append(out, reading{pairs, best[strings.Join(pairs, "\x00")]})
	}
	return out
}

func oneOf(v checks.Verdict) []reading { return []reading{{[]string{"verdict", string(v)}, 1}} }

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
