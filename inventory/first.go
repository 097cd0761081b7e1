package inventory

import (
	"bytes"
	_ "embed" // the template
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Found is what `init` saw of one host. Empty values were not seen and are left open.
type Found struct {
	Name    string
	Address string
	User    string
	Model   string // catalogue slug
	Cards   int
	BDFs    []FoundCard
	Board   string
	BIOS    string
	PSUs    []FoundPSU // from SMBIOS or the BMC; consumer boards name none
}

// FoundCard is one card and the slot that the board says it is in.
type FoundCard struct {
	BDF         string
	ID          string // first 12 hex digits of SHA-256(UUID)
	Name        string
	Designation string // of the slot, as the board prints it; it says nothing of the order
	Width       int    // lanes of the port above; 0 not seen
}

// FoundPSU is one supply that the host itself reports.
type FoundPSU struct {
	Watts int
	Name  string
}

//go:embed first.hcl.tmpl
var firstTemplate string

// WriteFirst writes a first inventory: what was found as declarations, and what only an owner can know as
// commented blocks that say what each of them unlocks. The result loads as it is, and after any of the blocks has
// been uncommented. Text that comes from hosts is quoted or, within comments, cleaned.
func WriteFirst(w io.Writer, found []Found) error {
	t, err := template.New("first").Funcs(template.FuncMap{
		"quote": quote, "clean": cleanComment, "join": strings.Join,
		"position": func(i, cards int) int { return 1 + i*spread(cards) },
	}).Parse(firstTemplate)
	if err != nil {
		return fmt.Errorf("template of a first inventory: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, named(found)); err != nil {
		return fmt.Errorf("first inventory: %w", err)
	}
	_, err = w.Write(hclwrite.Format(b.Bytes()))
	return err
}

// spread is how far apart the example positions of a commented chassis stand: room for a card of three slots and one
// free slot, for few cards; the owner puts the real ones.
func spread(cards int) int {
	if cards > 4 {
		return 3
	}
	return 4
}

// named gives every host a name that a rig may have, and no name twice.
func named(found []Found) []Found {
	taken := map[string]bool{}
	out := make([]Found, len(found))
	for i, f := range found {
		base := strings.Map(func(r rune) rune {
			if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r) {
				return r
			}
			return '-'
		}, f.Name)
		base = strings.Trim(base[:min(len(base), 100)], ".-")
		if base == "" {
			base = "rig"
		}
		f.Name = base
		for n := 2; taken[f.Name]; n++ {
			f.Name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[f.Name] = true
		out[i] = f
	}
	return out
}

// quote writes a text as an HCL literal.
func quote(s string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(strings.ToValidUTF8(s, "\uFFFD"))).Bytes())
}

// cleanComment keeps what a host says of itself from ending a comment or reaching the terminal as a command.
func cleanComment(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r < 0xa0) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return clip(strings.Join(strings.Fields(s), " "))
}
