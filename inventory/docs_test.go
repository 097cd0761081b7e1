package inventory

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"preflight/internal/catalog"
)

var update = flag.Bool("update", false, "write the generated part of docs/inventory.md")

// catalogued is a load against the real catalogue; paths of site rules are held to the real tree of facts by the
// tests of cmd/preflight, which may import both.
func catalogued(t *testing.T) Options {
	t.Helper()
	c, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	return Options{GPUSlugs: c.Slugs()}
}

func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob("../examples/*.hcl")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples are missing: %v %v", files, err)
	}
	for _, f := range files {
		inv, diags := Load(f, catalogued(t))
		if len(diags) > 0 {
			t.Errorf("%s:\n%s", f, render(t, inv, diags))
			continue
		}
		if src := inv.Files[f].Bytes; !bytes.Equal(hclwrite.Format(src), src) {
			t.Errorf("%s is not formatted as hclfmt does", f)
		}
		for _, r := range inv.Rigs {
			if r.Cards == nil || len(r.PSUs) == 0 || r.Mains == nil || r.Chassis == nil || len(r.Chassis.Slots) != *r.Cards {
				t.Errorf("%s: an example shows every declaration, and rig %s does not", f, r.Name)
			}
		}
	}
}

var fence = regexp.MustCompile("(?ms)^```hcl\n(.*?)^```")

func TestExamplesInDocsLoad(t *testing.T) {
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../README.md")
	found := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue
		}
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			found++
			if inv, diags := LoadBytes(f, []byte(m[1]), catalogued(t)); len(diags) > 0 {
				t.Errorf("%s", render(t, inv, diags))
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d examples were found", found)
	}
}

func TestReferenceIsInTheDocs(t *testing.T) {
	const doc = "../docs/inventory.md"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?s)(<!-- reference: begin.*?-->\n).*(<!-- reference: end -->)`)
	if *update {
		text = part.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(Reference(), "$", "$$")+"${2}"))
		if err := os.WriteFile(doc, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(text), Reference()) {
		t.Error("docs/inventory.md lags behind the schema: go test ./inventory -run Reference -update")
	}
	for name := range functions() {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+name+"(") {
			t.Errorf("docs/inventory.md does not name the function %s", name)
		}
	}
}
