package sample

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Item is one line of the reader, understood. Exactly one of its parts is set.
type Item struct {
	Card   *Card
	Kernel *Kernel
	CPU    *float64 // °C
	Sensor *Sensor
	Ended  string // nvidia-smi ended or refused, and what it said
	Note   string // something cannot be watched
}

// Card is a sample of one card.
type Card struct {
	At     time.Time // the host's clock, in its own zone
	BDF    string    // dddd:bb:dd.f
	Index  int       // as nvidia-smi counts; -1 when it did not say
	Name   string
	Lost   bool // the driver answers that the card is lost or must be reset
	Values Values
}

// Kernel is a line of the kernel's log about a card or a link.
type Kernel struct {
	Xid  int    // 0: not one
	BDF  string // "" when the line names none
	Text string
}

// Sensor is a reading of the BMC.
type Sensor struct {
	Name  string
	Value float64
	Unit  string // "degrees C", "Watts"
}

// longestText bounds what is kept of a line, bytes.
const longestText = 300

// Parser understands the reader's lines. It remembers which columns the driver gives.
type Parser struct{ fields []string }

// Line understands one line; nil for what says nothing.
func (p *Parser) Line(line string) *Item {
	letter, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
	rest = clip(rest)
	switch letter {
	case "F":
		p.fields = strings.Split(rest, ",")
	case "S":
		if c, ok := p.card(rest); ok {
			return &Item{Card: &c}
		}
	case "C":
		if v, err := strconv.ParseFloat(rest, 64); err == nil && v > -60000 && v < 250000 {
			v /= 1000
			return &Item{CPU: &v}
		}
	case "K":
		k := kernel(rest)
		return &Item{Kernel: &k}
	case "B":
		f := strings.Split(rest, ",")
		if len(f) != 3 {
			return nil
		}
		if v, err := strconv.ParseFloat(f[1], 64); err == nil && finite(v) {
			return &Item{Sensor: &Sensor{Name: f[0], Value: v, Unit: f[2]}}
		}
	case "E":
		if strings.TrimSpace(rest) != "" {
			return &Item{Ended: rest}
		}
	case "N":
		return &Item{Note: rest}
	}
	return nil
}

// clip bounds what a host said, and keeps it from moving a cursor.
func clip(s string) string {
	if len(s) > longestText {
		s = s[:longestText]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// card reads the columns of one card. Without a bus address it is nobody's.
func (p *Parser) card(line string) (Card, bool) {
	c := Card{Index: -1, Values: NoValues()}
	cells := strings.Split(line, ", ")
	for i, cell := range cells {
		if i >= len(p.fields) {
			break
		}
		cell = strings.TrimSpace(cell)
		c.Lost = c.Lost || strings.Contains(cell, "GPU is lost") || strings.Contains(cell, "requires reset")
		switch p.fields[i] {
		case "timestamp":
			c.At, _ = time.Parse("2006/01/02 15:04:05.000", cell)
		case "index":
			if n, err := strconv.Atoi(cell); err == nil && n >= 0 && n < 1024 {
				c.Index = n
			}
		case "name":
			c.Name = strings.TrimPrefix(cell, "NVIDIA ")
		case "pci.bus_id":
			c.BDF = address(cell)
		default:
			c.value(p.fields[i], cell)
		}
	}
	return c, c.BDF != "" && !c.At.IsZero()
}

var bus = regexp.MustCompile(`^([0-9a-f]{4})?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])$`)

// address shortens nvidia-smi's eight digits of a domain to the kernel's four.
func address(s string) string {
	m := bus.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return ""
	}
	return m[2]
}

// value takes a number that can be one; "[N/A]", "[Unknown Error]" and the like stay absent.
func (c *Card) value(field, cell string) {
	for m := range metrics {
		if !slices.Contains(metrics[m].fields, field) {
			continue
		}
		v, err := strconv.ParseFloat(cell, 64)
		if strings.HasPrefix(cell, "0x") {
			var bits uint64
			bits, err = strconv.ParseUint(cell[2:], 16, 64)
			v = float64(bits)
		}
		if err == nil && finite(v) && v >= metrics[m].least && v <= metrics[m].most {
			c.Values[m] = v
		}
		return
	}
}

var (
	xid  = regexp.MustCompile(`NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)`)
	near = regexp.MustCompile(`\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b`)
)

// kernel reads a line of the kernel's log. An Xid names its card without a function.
func kernel(line string) Kernel {
	k := Kernel{Text: line}
	if m := xid.FindStringSubmatch(line); m != nil {
		k.Xid, _ = strconv.Atoi(m[2])
		at := strings.ToLower(m[1])
		if !strings.Contains(at, ".") {
			at += ".0"
		}
		k.BDF = address(at)
		return k
	}
	if m := near.FindStringSubmatch(line); m != nil {
		k.BDF = m[1]
	}
	return k
}
