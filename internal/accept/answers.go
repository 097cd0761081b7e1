package accept

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Answer is what hands and eyes found about one item of the checklist.
type Answer struct {
	Item   string `json:"item"`
	Answer string `json:"answer"` // yes, no, none (does not apply)
	Note   string `json:"note,omitempty"`
}

// Answers are those of a whole hand-over.
type Answers struct {
	By   string              `json:"by"`
	Rigs map[string][]Answer `json:"rigs"` // by rig
}

// marks are what stands in the brackets of a checklist.
var marks = map[string]string{"x": "yes", "X": "yes", "!": "no", "-": "none"}

// Rig is a rig and the items that are asked about it.
type Rig struct {
	Name  string
	Items []Item
}

// Item is a question in English, by which its answer is kept, and in the language of those who answer.
type Item struct{ Text, Said string }

// asked finds the item that a line is about, and what the line says after it. A list may be in either language.
func (r Rig) asked(line string) (item Item, note string, ok bool) {
	for _, i := range r.Items {
		for _, text := range []string{i.Said, i.Text} {
			if rest, found := strings.CutPrefix(line, text); found && (rest == "" || strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "：")) {
				return i, strings.TrimSpace(strings.TrimLeft(rest, ":：")), true
			}
		}
	}
	return Item{}, "", false
}

// WriteChecklist writes a list to be answered with an editor.
func WriteChecklist(rigs []Rig) []byte {
	var b bytes.Buffer
	b.WriteString("# Answer every item: [x] yes, [!] no, [-] does not apply. A note may follow after a colon.\n")
	b.WriteString("by:\n")
	for _, r := range rigs {
		fmt.Fprintf(&b, "\nrig: %s\n", r.Name)
		for _, item := range r.Items {
			fmt.Fprintf(&b, "[ ] %s\n", item.Said)
		}
	}
	return b.Bytes()
}

// ParseChecklist reads an answered list. Every item of every rig must have an answer; all that is wrong is told at once.
func ParseChecklist(raw []byte, rigs []Rig) (Answers, error) {
	p := &checklist{out: Answers{Rigs: map[string][]Answer{}}, wanted: rigs}
	for i, line := range strings.Split(string(raw), "\n") {
		p.line(i+1, strings.TrimSpace(line))
	}
	if p.out.By == "" {
		p.wrong("by: says nobody; it names who answered")
	}
	for _, r := range rigs {
		for _, item := range r.Items {
			if !slices.ContainsFunc(p.out.Rigs[r.Name], func(a Answer) bool { return a.Item == item.Text }) {
				p.wrong("%s: no answer to %q", r.Name, item.Said)
			}
		}
	}
	return p.out, errors.Join(p.errs...)
}

// checklist is a list while it is read.
type checklist struct {
	out    Answers
	wanted []Rig
	rig    *Rig
	errs   []error
}

func (p *checklist) wrong(format string, args ...any) {
	if len(p.errs) < 20 { // a foreign file has thousands
		p.errs = append(p.errs, fmt.Errorf(format, args...))
	}
}

func (p *checklist) line(n int, line string) {
	name, isRig := strings.CutPrefix(line, "rig:")
	by, isBy := strings.CutPrefix(line, "by:")
	switch {
	case line == "" || strings.HasPrefix(line, "#"):
	case strings.ContainsFunc(line, unicode.IsControl):
		p.wrong("line %d holds control characters", n)
	case isBy:
		p.out.By = strings.TrimSpace(by)
	case isRig:
		p.rig = nil
		for i := range p.wanted {
			if p.wanted[i].Name == strings.TrimSpace(name) {
				p.rig = &p.wanted[i]
			}
		}
		if p.rig == nil {
			p.wrong("line %d: no rig %q is handed over", n, strings.TrimSpace(name))
		}
	case len(line) > 3 && line[0] == '[' && line[2] == ']':
		p.item(n, line)
	default:
		p.wrong("line %d is no line of a checklist: %.60q", n, line)
	}
}

func (p *checklist) item(n int, line string) {
	if p.rig == nil {
		p.wrong("line %d comes before a line rig:", n)
		return
	}
	text := strings.TrimSpace(line[3:])
	item, note, asked := p.rig.asked(text)
	answer, known := marks[line[1:2]]
	switch {
	case !asked:
		p.wrong("line %d: the checklist of %s has no item %.60q", n, p.rig.Name, text)
	case line[1] == ' ': // not answered yet: told with the others that are missing
	case !known:
		p.wrong("line %d: [%c] is no answer; it is [x] yes, [!] no or [-] does not apply", n, line[1])
	case slices.ContainsFunc(p.out.Rigs[p.rig.Name], func(a Answer) bool { return a.Item == item.Text }):
		p.wrong("line %d answers %.60q a second time", n, text)
	default:
		p.out.Rigs[p.rig.Name] = append(p.out.Rigs[p.rig.Name], Answer{item.Text, answer, note})
	}
}

// Refused are the answers that say no, as "RIG: item".
func (a Answers) Refused() []string {
	var out []string
	for rig, list := range a.Rigs {
		for _, x := range list {
			if x.Answer == "no" {
				out = append(out, rig+": "+x.Item)
			}
		}
	}
	slices.Sort(out)
	return out
}
