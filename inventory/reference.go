package inventory

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Reference is the list of all blocks and attributes as Markdown tables; docs/inventory.md holds it.
func Reference() string {
	var b strings.Builder
	for i, child := range file().blocks {
		if i > 0 {
			b.WriteByte('\n')
		}
		describe(&b, child, "")
	}
	return b.String()
}

func describe(b *strings.Builder, s *block, within string) {
	head := s.name
	if s.label != "" {
		head += fmt.Sprintf(" %q", strings.ToUpper(strings.Fields(strings.TrimSuffix(s.label, ","))[0]))
		head = strings.ReplaceAll(head, ",", "")
	}
	level := "###"
	if within != "" {
		level = "####"
		head = within + " ▸ " + head
	}
	fmt.Fprintf(b, "%s `%s`\n\n%s\n", level, head, s.doc)
	if s.many && s.label == "" && s.name != "locals" {
		b.WriteString("May occur several times.\n")
	}
	if len(s.attrs) > 0 {
		b.WriteString("\n| attribute | takes | |\n|---|---|---|\n")
		for _, a := range s.attrs {
			fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", a.name, map[bool]string{true: " (required)"}[a.required], takes(a), a.doc)
		}
	}
	for _, child := range s.blocks {
		b.WriteByte('\n')
		if child.name == "ssh" && within == "" && s.name == "rig" {
			fmt.Fprintf(b, "#### `rig ▸ ssh`\n\nAs the top-level block, for this rig alone.\n")
			continue
		}
		describe(b, child, s.name)
	}
}

func takes(a attr) string {
	switch {
	case a.oneOf != nil:
		return "`" + strings.Join(a.oneOf, "`, `") + "`"
	case a.kind == cty.NilType:
		return "an expression"
	}
	return kindName(a.kind)
}
