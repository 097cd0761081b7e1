package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

func TestHostlist(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "gpu1", "gpu1"},
		{"padding is kept", "gpu[08-11]", "gpu08 gpu09 gpu10 gpu11"},
		{"no padding", "gpu[8-11]", "gpu8 gpu9 gpu10 gpu11"},
		{"range and number", "gpu[01-02,70]", "gpu01 gpu02 gpu70"},
		{"several brackets", "r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
		{"after the bracket", "r[1-2].lab", "r1.lab r2.lab"},
		{"several names", "a[1-2], login", "a1 a2 login"},
		{"backwards", "a[2-1]", "error: runs backwards"},
		{"open bracket", "a[1", "error: not closed"},
		{"nested", "a[[1]]", "error: do not match"},
		{"letters", "a[x-y]", "error: no number"},
		{"empty", "a,,b", "error: empty name"},
		{"too many", "a[1-99999]b[1-99999]", "error: more than 100000"},
		{"too many in sum", "a[1-60000],b[1-60000]", "error: more than 100000"},
	} {
		names, err := Hostlist(tc.in)
		got := strings.Join(names, " ")
		if err != nil {
			got = "error: " + err.Error()
		}
		want, isError := strings.CutPrefix(tc.want, "error: ")
		if (isError && !strings.Contains(got, want)) || (!isError && got != want) {
			t.Errorf("%s: %s gives %q, want %q", tc.name, tc.in, got, tc.want)
		}
	}
}

func TestVersionAtLeast(t *testing.T) {
	for _, tc := range []struct {
		have, want string
		ok         bool
	}{
		{"F5", "F31", false},
		{"F31", "F5", true},
		{"P1.50", "P1.5", true},
		{"P1.5", "P1.50", false},
		{"2.5a", "2.5", true},
		{"2.4b", "2.5", false},
		{"2.5", "2.5.0", true},
		{"2.5", "2.5.1", false},
		{"1.10", "1.9", true},
		{"007", "7", true},
		{"12345678901234567890123", "2", true},
	} {
		if ok, err := VersionAtLeast(tc.have, tc.want); err != nil || ok != tc.ok {
			t.Errorf("%s at least %s: got %v %v", tc.have, tc.want, ok, err)
		}
	}
	if _, err := VersionAtLeast("beta", "1"); err == nil {
		t.Error("a version without a digit must not compare")
	}
}

func TestFunctions(t *testing.T) {
	ctx := &hcl.EvalContext{Functions: functions(), Variables: map[string]cty.Value{
		"some": cty.ListVal([]cty.Value{cty.True, cty.UnknownVal(cty.Bool)}),
		"text": cty.UnknownVal(cty.String),
	}}
	for _, tc := range []struct{ expr, want string }{
		{`length("żaba")`, "4"},
		{`length({ a = 1 })`, "1"},
		{`length([1, 2])`, "2"},
		{`join("-", sort(toset(["b", "a"])))`, "a-b"},
		{`format("gpu%02d", 7)`, "gpu07"},
		{`alltrue([true, false])`, "false"},
		{`alltrue(some)`, "unknown"},
		{`anytrue(some)`, "true"},
		{`anytrue([])`, "false"},
		{`sum([1, 2.5])`, "3.5"},
		{`endswith("node-a", "-a")`, "true"},
		{`lookup({ a = "x" }, "b", "y")`, "y"},
		{`version_at_least(text, "1")`, "unknown"},
		{`try(missing.path, "z")`, "z"},
		{`format("%99999999d", 1)`, "error: result would be"},
		{`replace(join("", [for i in range(1000) : "aaaaaaaaaa"]), "a", join("", [for i in range(1000) : "b"]))`, "error: result would be"},
		{`join(join("", [for i in range(1000) : "aaaaaaaaaa"]), [for i in range(1000) : "a"])`, "error: result would be"},
		{`range(100000)`, "error: more than 1024"},
	} {
		expr, diags := hclsyntax.ParseExpression([]byte(tc.expr), "x", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		v, diags := expr.Value(ctx)
		got := "unknown"
		switch {
		case diags.HasErrors():
			got = "error: " + diags.Error()
		case v.IsKnown() && v.Type() == cty.Number:
			got = v.AsBigFloat().Text('g', -1)
		case v.IsKnown() && v.Type() == cty.Bool:
			got = fmt.Sprint(v.True())
		case v.IsKnown() && v.Type() == cty.String:
			got = v.AsString()
		}
		want, isError := strings.CutPrefix(tc.want, "error: ")
		if (isError && !strings.Contains(got, want)) || (!isError && got != want) {
			t.Errorf("%s: got %q, want %q", tc.expr, got, tc.want)
		}
	}
}

func TestVariablesAndForEach(t *testing.T) {
	src := `
variable "lab" {
  type    = string
  default = "lab-0"
}
variable "racks" {
  type    = map(number)
  default = { r1 = 4 }
}
locals {
  names = toset(hostlist("gpu[01-03]"))
  fqdn  = "${local.stem}.example"
  stem  = upper(var.lab)
}
rig "node" {
  for_each = local.names
  address  = "${each.key}.${local.fqdn}"
  group    = var.lab
}
rig "rack" {
  for_each = var.racks
  address  = "h"
  cards    = each.value
}
`
	opts := options()
	opts.Vars = map[string]string{"racks": "{ r1 = 2, r7 = 8 }"}
	opts.Env = []string{"HOME=/x", "PREFLIGHT_VAR_lab=lab-1", "PREFLIGHT_VAR_racks={}", "PREFLIGHT_VAR_undeclared=1"}
	inv := mustLoad(t, src, opts)
	var got []string
	for _, r := range inv.Rigs {
		cards := 0
		if r.Cards != nil {
			cards = *r.Cards
		}
		got = append(got, fmt.Sprintf("%s %s %s %d", r.Name, r.Address, r.Group, cards))
	}
	want := "node-gpu01 gpu01.LAB-1.example lab-1 0|node-gpu02 gpu02.LAB-1.example lab-1 0|node-gpu03 gpu03.LAB-1.example lab-1 0|rack-r1 h  2|rack-r7 h  8"
	if strings.Join(got, "|") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "|"), want)
	}

	opts.Vars = map[string]string{"lba": "x"}
	if _, diags := LoadBytes("rigs.hcl", []byte(src), opts); !diags.HasErrors() || !strings.Contains(diags.Error(), `Did you mean "lab"?`) {
		t.Errorf("an undeclared --var must be an error: %v", diags)
	}
	opts.Vars = map[string]string{"racks": "{ r1 = "}
	if _, diags := LoadBytes("rigs.hcl", []byte(src), opts); !diags.HasErrors() {
		t.Error("a --var that is no expression must be an error")
	}
}

func TestProfilesMerge(t *testing.T) {
	inv := mustLoad(t, `
profile "default" {
  psu_margin = 1.5
  require    = ["pcie.width", "site.one"]
  check "one" { assert = host.kind == "metal" }
  check "two" { assert = host.kind == "metal" }
}
profile "lax" {
  allow_x8 = true
  check "two" { assert = host.kind != "vm" }
}
profile "laxer" {
  extends    = "lax"
  psu_margin = 1.1
}
rig "a" { address = "h" }
rig "b" {
  address = "h"
  profile = "laxer"
}
`, options())
	a, b := inv.Rigs[0].Profile, inv.Rigs[1].Profile
	if *a.PSUMargin != 1.5 || a.AllowX8 != nil {
		t.Errorf("a declared default applies to all: %+v", a)
	}
	if *b.PSUMargin != 1.1 || b.AllowX8 == nil || len(b.Require) != 2 || len(b.Rules) != 2 || b.Name != "laxer" {
		t.Errorf("profiles do not merge: %+v", b)
	}
	if v, diags := b.Rules[1].Eval(host("container", "")); diags.HasErrors() || v.False() {
		t.Errorf("the nearer rule of a name wins: %v %v", v, diags)
	}
	if _, err := inv.Profile("laxerr"); err == nil || !strings.Contains(err.Error(), `"laxer"`) {
		t.Errorf("no suggestion: %v", err)
	}
}

// host is a value of hostType; an empty text is an absent fact.
func host(kind, bios string) cty.Value {
	leaf := func(s string) cty.Value {
		if s == "" {
			return cty.UnknownVal(cty.String)
		}
		return cty.StringVal(s)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"kind":  leaf(kind),
		"bios":  cty.ObjectVal(map[string]cty.Value{"version": leaf(bios), "vendor": leaf("")}),
		"cards": cty.ListValEmpty(hostType.AttributeType("cards").ElementType()),
	})
}

func TestRule(t *testing.T) {
	inv := mustLoad(t, `
locals { floor = "2.5" }
profile "p" {
  check "bios" { assert = version_at_least(host.bios.version, local.floor) }
  check "either" { assert = host.kind == "metal" || host.bios.vendor == "x" }
  check "first" { assert = host.cards[0].bar1_mib > 256 }
}
rig "a" {
  address = "h"
  profile = "p"
}
`, options())
	for _, tc := range []struct {
		name string
		rule int
		host cty.Value
		want string
	}{
		{"newer", 0, host("metal", "2.10"), "true"},
		{"older", 0, host("metal", "2.4"), "false"},
		{"absent fact", 0, host("metal", ""), "unknown"},
		{"version without a digit", 0, host("metal", "beta"), "error"},
		{"decided whatever the absent fact is", 1, host("metal", ""), "true"},
		{"no such card", 2, host("metal", ""), "error"},
	} {
		v, diags := inv.Rigs[0].Profile.Rules[tc.rule].Eval(tc.host)
		got := "unknown"
		switch {
		case diags.HasErrors():
			got = "error"
		case v.IsKnown():
			got = fmt.Sprint(v.True())
		}
		if got != tc.want {
			t.Errorf("%s: got %s (%v), want %s", tc.name, got, diags, tc.want)
		}
	}
	if _, diags := (SiteRule{Name: "bare", Assert: inv.Rigs[0].Profile.Rules[1].Assert}).Eval(host("vm", "1")); diags.HasErrors() {
		t.Errorf("a rule without a scope must evaluate: %v", diags)
	}
}

func TestSelect(t *testing.T) {
	inv := mustLoad(t, `
rig "node-a" {
  address = "h"
  group = "lab-1"
}
rig "node-b" {
  address = "h"
  group = "lab-1"
}
rig "login" { address = "h" }
`, options())
	for _, tc := range []struct {
		name     string
		patterns []string
		want     string
	}{
		{"all", nil, "node-a node-b login"},
		{"glob, in the inventory's order", []string{"login", "node-*"}, "node-a node-b login"},
		{"group", []string{"group:lab-1"}, "node-a node-b"},
		{"typo", []string{"nod-a"}, `error: Did you mean "node-a"?`},
		{"group typo", []string{"group:lab1"}, `error: Did you mean "group:lab-1"?`},
		{"one of two matches nothing", []string{"login", "zzz*"}, "error: no rig matches"},
		{"bad pattern", []string{"[a"}, "error: no valid pattern"},
		{"group of none", []string{"group:"}, "error: no rig matches"},
	} {
		rigs, err := inv.Select(tc.patterns)
		var names []string
		for _, r := range rigs {
			names = append(names, r.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = "error: " + err.Error()
		}
		want, isError := strings.CutPrefix(tc.want, "error: ")
		if (isError && !strings.Contains(got, want)) || (!isError && got != want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestBombs(t *testing.T) {
	deep := strings.Repeat("[", 5000)
	nested := `locals { x = [for a in range(1000) : [for b in range(1000) : [for c in range(1000) : [for d in range(1000) : d]]]] }`
	laughs := "locals {\n  l0 = [\"ha\", \"ha\", \"ha\", \"ha\", \"ha\", \"ha\", \"ha\", \"ha\"]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("  l%d = [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("local.l%d, ", i-1), 8), ", "))
	}
	for _, tc := range []struct{ name, src, want string }{
		{"deep brackets", "locals { x = " + deep + " }", "nested more than"},
		{"deep blocks", strings.Repeat("a {\n", 5000), "nested more than"},
		{"long chain", "locals { x = 1" + strings.Repeat(" + 1", 20_000) + " }", "more than 5000 operators"},
		{"chain of signs", "locals { x = " + strings.Repeat("!", 20_000) + "true }", "more than 5000 operators"},
		{"four loops", nested, "produce more than"},
		{"billion laughs", laughs + "}", "produce more than"},
		{"loop in a rule", "profile \"p\" {\n  check \"x\" {\n    assert = length([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]]) > 0\n  }\n}", "produce more than"},
		{"huge number", `rig "a" { address = "${1e9999999}" }`, "too large"},
		{"huge number in a text", `rig "a" { address = "${tonumber("1e9999999")}" }`, "too large"},
		{"number that grows", "locals {\n  a = 1e99 * 1e99 * 1e99 * 1e99\n}\n" + `rig "a" { address = "${local.a}" }`, "produce more than"},
		{"large file", strings.Repeat("# comment\n", largestFile/10+1), "at most"},
		{"20,001 rigs", "rig \"a\" {\n  for_each = toset(hostlist(\"x[1-20001]\"))\n  address = each.key\n}", "at most 20000"},
	} {
		inv, diags := LoadBytes("rigs.hcl", []byte(tc.src), options())
		if !diags.HasErrors() || !strings.Contains(diags.Error(), tc.want) {
			t.Errorf("%s: want %q, got %v", tc.name, tc.want, diags)
		}
		_ = render(t, inv, diags)
	}
	long := "locals {\n  x = [\n" + strings.Repeat("    { a = 1, b = \"x${1}\" },\n", 20_000) + "  ]\n}"
	if _, diags := LoadBytes("rigs.hcl", []byte(long), options()); diags.HasErrors() {
		t.Errorf("a long table is no bomb: %v", diags)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		whole8, `rig "a" {`, "locals {\n a = local.b\n b = local.a\n}", `rig "x" { for_each = toset(hostlist("a[1-9]")) address = each.key }`,
		`locals { x = [for a in range(9) : [for b in range(9) : "${a}-${b}"]] }`, "variable \"v\" { type = list(string) }", "catalog { gpu \"x\" {} }",
		"profile \"p\" {\n check \"c\" {\n assert = alltrue([for c in host.cards : c.bar1_mib > 1])\n }\n}", "\xff\xfe", "ssh = {}", `rig "a" { address = <<E
x
E
}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		inv, diags := LoadBytes("fuzz.hcl", []byte(src), options())
		_ = render(t, inv, diags)
		if diags.HasErrors() {
			return
		}
		for _, r := range inv.Rigs {
			if r.Profile == nil || r.Address == "" || r.Name == "" {
				t.Errorf("a rig of a sound inventory lacks a profile, an address or a name: %+v", r)
			}
			for _, rule := range r.Profile.Rules {
				_, _ = rule.Eval(host("metal", "1"))
			}
		}
	})
}
