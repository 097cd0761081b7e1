package report

import (
	"fmt"
	"strings"

	"preflight/internal/facts"
)

// headlineOf is who and what.
func headlineOf(g Rig) string {
	return strings.TrimRight(Safe(g.Name)+"  "+Describe(g), " ")
}

// Describe is "8× RTX 4090  Supermicro AS-4124GS-TNR  2× EPYC 7542".
func Describe(g Rig) string {
	h := g.Host
	if h == nil {
		return Safe(g.Address)
	}
	var parts []string
	parts = append(parts, models(h.Cards)...)
	if v := strings.TrimSpace(h.Board.Vendor.Value + " " + h.Board.Name.Value); v != "" {
		parts = append(parts, shortVendor(v))
	}
	if m := h.CPU.Model.Value; m != "" {
		m = shortCPU(m)
		if n := h.CPU.Sockets.Or(1); n > 1 {
			m = fmt.Sprintf("%d× %s", n, m)
		}
		parts = append(parts, m)
	}
	return Safe(strings.Join(parts, "  "))
}

// models is "8× RTX 4090", or one entry for each model where they differ.
func models(cards []facts.Card) []string {
	var order []string
	n := map[string]int{}
	for _, c := range cards {
		name := strings.TrimPrefix(c.Name.Value, "GeForce ")
		if name == "" {
			name = strings.TrimPrefix(c.Label, "GeForce ")
		}
		if n[name]++; n[name] == 1 {
			order = append(order, name)
		}
	}
	for i, name := range order {
		order[i] = strings.TrimSpace(fmt.Sprintf("%d× %s", n[name], name))
	}
	return order
}

func shortVendor(s string) string {
	return strings.NewReplacer("ASUSTeK COMPUTER INC.", "ASUS", "Micro-Star International Co., Ltd.", "MSI", "Gigabyte Technology Co., Ltd.", "Gigabyte").Replace(s)
}

func shortCPU(s string) string {
	s = strings.NewReplacer("(R)", "", "(TM)", "", " CPU", "", " Processor", "").Replace(s)
	s, _, _ = strings.Cut(s, " @")
	f := strings.Fields(s)
	if len(f) > 1 && strings.Contains(f[len(f)-1], "-Core") {
		f = f[:len(f)-1]
	}
	if len(f) > 1 && (f[0] == "AMD" || f[0] == "Intel") {
		f = f[1:]
	}
	return strings.Join(f, " ")
}
