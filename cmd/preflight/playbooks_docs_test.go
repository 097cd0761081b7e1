package main

import (
	"os"
	"strings"
	"testing"

	"preflight/playbooks"
)

// docs/playbooks.md tells every playbook as `provision --list NAME` does: its words, its parameters, what it clears; and the
// playbook in it can be loaded.
func TestPlaybooksAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/playbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	lib, diags := playbooks.Load("")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, name := range lib.Names() {
		p := lib.Playbooks[name]
		_, section, ok := strings.Cut(page, "\n### "+name+"\n")
		if !ok {
			t.Errorf("%s is not told", name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n### ")
		want := append([]string{p.Doc}, p.Notes...)
		for _, x := range p.Params {
			want = append(want, "| `"+x.Name+"` |", x.Doc)
		}
		for _, c := range p.Clears {
			want = append(want, "`"+c+"`")
		}
		for _, w := range want {
			if !strings.Contains(section, w) {
				t.Errorf("%s: the page does not say %q", name, w)
			}
		}
	}
	_, example, _ := strings.Cut(page, "```\nplaybook ")
	example, _, _ = strings.Cut(example, "\n```")
	if _, _, diags := playbooks.Parse("docs/playbooks.md", []byte("playbook "+example)); diags.HasErrors() {
		t.Error(diags)
	}
}
