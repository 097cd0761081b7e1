package report

import (
	"fmt"
	"strings"

	"preflight/checks"
	"preflight/internal/workload"
)

// fit is a table a job: a row a rig, then the machines to compare with.
func (m *markdown) fit(jobs []workload.Job) {
	for _, j := range jobs {
		m.line("")
		m.line("## %s %s", m.say("fit"), md(strings.TrimSpace(j.Name+" "+j.Title)))
		m.line("")
		m.line("| | %s | %s | %s | %s |", m.say("rig"), m.say("fits?"), m.say("links"), m.say("because"))
		m.line("|---|---|---|---|---|")
		for _, a := range append(append([]workload.Assessment{}, j.Assessments...), j.References...) {
			because := m.l.Say(a.Summary)
			if len(a.Changes) > 0 {
				because += m.l.Say("; ") + m.l.Say(strings.Join(a.Changes, "; "))
			}
			m.line("| %s | %s | %s | %s | %s |", marks[FitVerdict(a)].sign, md(FitHead(a.Rig)), md(m.l.Say(a.Fit)), md(m.l.Say(SpeedWords(a.Speed))), md(because))
		}
		for _, o := range j.Open {
			m.line("| %s | %s | %s | | %s |", marks[checks.Unknown].sign, md(o.Rig), m.say("unknown"), md(m.l.Say(o.Why)))
		}
		for _, a := range j.Assessments {
			if a.Launch != nil {
				m.line("")
				m.line("%s", md(FitHead(a.Rig)))
				m.code("", a.Launch.Command)
			}
		}
		if len(j.Costs) > 0 {
			m.line("")
			for _, c := range j.Costs {
				m.bullet("%s", md(fmt.Sprintf("%s: %s", c.Rig, FitCost(c, m.l))))
			}
		}
	}
}
