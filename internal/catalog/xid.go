package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Xid is what is known of one error number that the NVIDIA driver writes to the kernel log.
type Xid struct {
	Number   int
	Severity string   // see XidSeverities
	Part     string   // what it is about: bus, memory, nvlink, firmware, hardware, display, program, power
	EchoOf   []string // numbers, or "any": after one of these it is their consequence
	Name     string
	Cause    string // what usually brings it about
	Action   string // what to do first
	Trust    string // confirmed, recalled
	Source   string
}

// XidSeverities are the grades of an Xid: what one such line since boot says of the card.
//
//	info   nothing is wrong            app    a program's fault; many on one card alone point at the card
//	warn   look at it                  reset  the card needs a reset; when repeated, something is broken
//	link   an NVLink failed            fail   the card is not fit until it was mended
//	text   the line itself says what is to be done
var XidSeverities = []string{"info", "app", "warn", "reset", "link", "fail", "text"}

func addXids(c *Catalog, rows []map[string]string) error {
	c.xids = make(map[int]Xid, len(rows))
	for _, r := range rows {
		x := Xid{
			Number: integer(r["xid"]), Severity: r["severity"], Part: r["part"], Name: r["name"], Cause: r["cause"], Action: r["action"],
			Trust: r["confidence"], Source: r["source"],
		}
		if r["echo_of"] != "" {
			x.EchoOf = strings.Split(r["echo_of"], ",")
		}
		if x.Number == 0 || !slices.Contains(XidSeverities, x.Severity) {
			return fmt.Errorf("row %q: no number, or unknown severity %q", r["xid"], x.Severity)
		}
		c.xids[x.Number] = x
	}
	return nil
}

// Xid finds an error number.
func (c *Catalog) Xid(number int) (Xid, bool) {
	x, ok := c.xids[number]
	return x, ok
}

// Xids lists every known number in order.
func (c *Catalog) Xids() []Xid {
	out := make([]Xid, 0, len(c.xids))
	for _, x := range c.xids {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Xid) int { return a.Number - b.Number })
	return out
}

// Echoes says whether this number, after the earlier one, is its consequence and no fault of its own.
func (x Xid) Echoes(earlier int) bool {
	return earlier != x.Number && (slices.Contains(x.EchoOf, "any") || slices.Contains(x.EchoOf, fmt.Sprint(earlier)))
}
