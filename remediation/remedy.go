package remediation

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsimple"

	"preflight/checks"
	"preflight/internal/lang"
)

//go:embed data
var data embed.FS

// Text is a text in the languages that it has been written in. English is always there.
type Text struct{ En, Zh string }

// In returns the text in a language, or in English where it lacks that one.
func (t Text) In(l lang.Language) string {
	if l == lang.Zh && t.Zh != "" {
		return t.Zh
	}
	return t.En
}

// Remedy is one entry of the catalogue, before it is filled.
type Remedy struct {
	Code   string // "pcie.width/slot-fault"; what Finding.Remedy holds
	Title  Text
	Params map[string]string // values that the steps use, and the words that stand in for a missing one
	Reboot string            // "no", "yes", "power off"
	Verify string            // a command whose finding must be gone afterwards
	Clears []string          // ids of checks that this mends
	Steps  []RawStep
}

// RawStep is a step with placeholders such as {bdf}.
type RawStep struct {
	Text    Text
	Command string // for a shell on the rig; {cap} stands for a value that is safe there, else for <CAP>
	Option  string // key of a BIOS option
	Hand    bool   // done with hands, or in the inventory
	Needs   []string
}

// Fix is a remedy filled for one finding and board.
type Fix struct {
	Code   string
	Title  string
	Steps  []Step
	Reboot string // "no", "yes" or "yes, with the power off"
	Verify string
	Clears []string
}

// Step is one thing to do: Command on the rig, Menu in its BIOS ("A ▸ B ▸ Option = Value"), or, with neither, by hand.
type Step struct {
	Text    string
	Command string
	Menu    string
}

// Board is the motherboard as DMI names it; empty when it is not known.
type Board struct {
	Vendor, Name, BIOS string
}

// Catalog is every remedy. It is immutable once loaded.
type Catalog struct {
	remedies map[string]Remedy
	bios     biosTable
}

// fileHCL and the types below are the shape of data/*.hcl.
type fileHCL struct {
	Remedies []remedyHCL `hcl:"remedy,block"`
	Options  []optionHCL `hcl:"option,block"`
}

type remedyHCL struct {
	Code    string            `hcl:"code,label"`
	Title   string            `hcl:"title"`
	TitleZh string            `hcl:"title_zh,optional"`
	Params  map[string]string `hcl:"params,optional"`
	Reboot  string            `hcl:"reboot"`
	Verify  string            `hcl:"verify"`
	Clears  []string          `hcl:"clears,optional"`
	Steps   []stepHCL         `hcl:"step,block"`
}

type stepHCL struct {
	Text    string   `hcl:"text"`
	TextZh  string   `hcl:"text_zh,optional"`
	Command string   `hcl:"command,optional"`
	Option  string   `hcl:"bios,optional"`
	Hand    bool     `hcl:"hand,optional"`
	Needs   []string `hcl:"needs,optional"`
}

// Load reads the embedded remedies. An error means that the data is broken, and says where.
func Load() (*Catalog, error) { return load(data, nil) }

// LoadFor is Load of those files only that hold one of the codes: reading them all takes longer than judging a host.
func LoadFor(codes []string) (*Catalog, error) { return load(data, codes) }

func load(files fs.FS, codes []string) (*Catalog, error) {
	c := &Catalog{remedies: map[string]Remedy{}}
	names, err := fs.Glob(files, "data/*.hcl")
	if err != nil || len(names) == 0 {
		return nil, errors.Join(errors.New("no remedies are embedded"), err)
	}
	var options []optionHCL
	for _, name := range names {
		src, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if codes != nil && !holds(src, codes) {
			continue
		}
		var f fileHCL
		if err := hclsimple.Decode(path.Base(name), src, nil, &f); err != nil {
			return nil, fmt.Errorf("remedies: %w", err)
		}
		options = append(options, f.Options...)
		for _, r := range f.Remedies {
			if _, dup := c.remedies[r.Code]; dup {
				return nil, fmt.Errorf("remedies: %s: %s is given twice", name, r.Code)
			}
			c.remedies[r.Code] = r.remedy()
		}
	}
	csv, err := fs.ReadFile(files, "data/bios_paths.csv")
	if err != nil {
		return nil, err
	}
	if c.bios, err = readBIOS(csv, options, codes == nil); err != nil {
		return nil, err
	}
	return c, nil
}

// holds says whether a file has options, or the remedy of one of the codes.
func holds(src []byte, codes []string) bool {
	if bytes.Contains(src, []byte("\noption ")) {
		return true
	}
	return slices.ContainsFunc(codes, func(code string) bool { return bytes.Contains(src, []byte(`remedy "`+code+`"`)) })
}

func (r remedyHCL) remedy() Remedy {
	out := Remedy{Code: r.Code, Title: Text{r.Title, r.TitleZh}, Params: r.Params, Reboot: r.Reboot, Verify: r.Verify, Clears: r.Clears}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, RawStep{Text: Text{s.Text, s.TextZh}, Command: strings.TrimSpace(s.Command), Option: s.Option, Hand: s.Hand, Needs: s.Needs})
	}
	return out
}

// Codes lists every code, sorted.
func (c *Catalog) Codes() []string {
	codes := make([]string, 0, len(c.remedies))
	for code := range c.remedies {
		codes = append(codes, code)
	}
	sort.Strings(codes)
	return codes
}

// Remedy returns an entry as it is written, with placeholders.
func (c *Catalog) Remedy(code string) (Remedy, bool) {
	r, ok := c.remedies[code]
	return r, ok
}

// For fills the remedy of a finding in English; false when the finding names none, or one that is not known.
func (c *Catalog) For(f checks.Finding, b Board) (Fix, bool) { return c.ForIn(lang.En, f, b) }

// ForIn is For in a language.
func (c *Catalog) ForIn(l lang.Language, f checks.Finding, b Board) (Fix, bool) {
	r, ok := c.remedies[f.Remedy]
	if !ok {
		return Fix{}, false
	}
	v := values{lang: l, params: r.Params, args: f.Args}
	fix := Fix{
		Code: r.Code, Title: v.words(r.Title.In(l)), Reboot: rebootWords[r.Reboot], Verify: v.command(r.Verify), Clears: r.Clears,
	}
	for _, s := range r.Steps {
		if !v.given(s.Needs) {
			continue
		}
		step := Step{Text: v.words(s.Text.In(l)), Command: v.command(s.Command)}
		if s.Option != "" {
			step.Menu = c.bios.menu(l, s.Option, b)
		}
		fix.Steps = append(fix.Steps, step)
	}
	return fix, true
}

// rebootWords are the answers that a remedy may give to "does it need a reboot?".
var rebootWords = map[string]string{"no": "no", "yes": "yes", "power off": "yes, with the power off"}
