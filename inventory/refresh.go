package inventory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Refresh writes new bus addresses into the declaration of one rig: in the card of every slot, and in the cards that
// a psu block feeds. Nothing else of the source changes, comments and layout included. Keys and values of moved are
// bus addresses; two cards may trade places. It is an error when the source cannot be parsed, holds no such rig, or
// computes the addresses that would have to change.
func Refresh(src []byte, rigName string, moved map[string]string) ([]byte, error) {
	if diags := tooDeep("rigs.hcl", src); diags.HasErrors() {
		return nil, diags
	}
	f, diags := hclsyntax.ParseConfig(src, "rigs.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("the inventory cannot be parsed: %w", diags)
	}
	rig := findRig(f.Body.(*hclsyntax.Body), rigName)
	if rig == nil {
		return nil, fmt.Errorf("no rig %q is declared as a block of its own; one that for_each makes cannot hold bus addresses of one host", rigName)
	}
	normal := map[string]string{}
	for from, to := range moved {
		f, problem := NormalCard(from)
		t, problem2 := NormalCard(to)
		if problem != "" || problem2 != "" {
			return nil, fmt.Errorf("cannot move: %s", problem+problem2)
		}
		normal[f] = t
	}
	edits, err := cardEdits(rig.Body, normal)
	if err != nil {
		return nil, err
	}
	// From the end, so that earlier offsets stay right.
	slices.SortFunc(edits, func(a, b edit) int { return b.at.Start.Byte - a.at.Start.Byte })
	out := slices.Clone(src)
	for _, e := range edits {
		out = slices.Replace(out, e.at.Start.Byte, e.at.End.Byte, []byte(e.text)...)
	}
	return out, nil
}

type edit struct {
	at   hcl.Range
	text string
}

func findRig(body *hclsyntax.Body, name string) *hclsyntax.Block {
	for _, b := range body.Blocks {
		if b.Type == "rig" && slices.Equal(b.Labels, []string{name}) && b.Body.Attributes["for_each"] == nil {
			return b
		}
	}
	return nil
}

// cardEdits finds every literal that names a moved card.
func cardEdits(rig *hclsyntax.Body, moved map[string]string) ([]edit, error) {
	var exprs []hclsyntax.Expression
	for _, b := range rig.Blocks {
		switch b.Type {
		case "psu":
			if a := b.Body.Attributes["cards"]; a != nil {
				list, ok := a.Expr.(*hclsyntax.TupleConsExpr)
				if !ok {
					return nil, computed(a)
				}
				exprs = append(exprs, list.Exprs...)
			}
		case "chassis":
			for _, slot := range b.Body.Blocks {
				if a := slot.Body.Attributes["card"]; a != nil && slot.Type == "slot" {
					if len(a.Expr.Variables()) > 0 {
						return nil, computed(a)
					}
					exprs = append(exprs, a.Expr)
				}
			}
		}
	}
	var edits []edit
	for _, e := range exprs {
		v, diags := e.Value(nil)
		if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
			continue
		}
		if to, changed := rename(v.AsString(), moved); changed {
			edits = append(edits, edit{at: e.Range(), text: quote(to)})
		}
	}
	return edits, nil
}

func computed(a *hclsyntax.Attribute) error {
	return fmt.Errorf("%s is computed; only addresses that are written out can be rewritten", Position(a.SrcRange))
}

// rename replaces a card, or each step of a path of bridges.
func rename(card string, moved map[string]string) (string, bool) {
	normal, problem := NormalCard(card)
	if problem != "" {
		return "", false
	}
	changed := false
	steps := strings.Split(normal, "/")
	for i, s := range steps {
		if to, ok := moved[s]; ok && to != s {
			steps[i], changed = to, true
		}
	}
	return strings.Join(steps, "/"), changed
}
