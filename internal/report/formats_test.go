package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/lang"
)

// hostile is the sample with everything a host can say that a format could trip over.
func hostile() *Report {
	r := sample()
	g := &r.Rigs[0]
	evil := "=cmd|'/c x'!A0 <script>alert(1)</script> \"q\" | `x` ]]> \x1b[2J\x00 @octocat #1 \\ \n{}"
	g.Findings[0].Summary, g.Findings[0].Observed = evil, evil
	g.Findings[0].Evidence = []checks.Evidence{{Source: evil, Value: evil}}
	g.Notes = []string{evil}
	g.Fixes[0].Title = evil
	r.Rigs[1].Error.Summary = evil
	return r
}

// declared is the sample with an inventory.
func declared() *Report {
	r := sample()
	r.Rigs[0].Declared = map[string]Place{
		"":                     {"lab/my rigs.hcl", 31, 1, 31, 13},
		"chassis.slot-spacing": {"lab/my rigs.hcl", 44, 3, 44, 10},
	}
	r.Rigs[0].Required = []string{"pcie.acs", "ram.channels", "pcie.errors"}
	r.Rigs[0].Host.Cards[0].BDF = "0000:01:00.0"
	r.Rigs[0].Host.Cards[0].BAR1MiB = facts.Of(int64(256), "t")
	r.Rigs[0].Host.NCCL = []facts.NCCLRun{{Engine: "native", Layout: "single", Ranks: 8, Rows: []facts.NCCLRow{{Bytes: 1 << 20, BusBW: 3.5}, {Bytes: 1 << 28, BusBW: 7.1}}}}
	return r
}

// writers are all formats beside text and JSON, by the end of their golden file.
var writers = map[string]func(io.Writer, *Report, lang.Language) error{
	"junit.xml": WriteJUnit,
	"sarif":     WriteSARIF,
	"md":        WriteMarkdown,
	"prom":      func(w io.Writer, r *Report, _ lang.Language) error { return WritePrometheus(w, r) },
	"csv":       func(w io.Writer, r *Report, _ lang.Language) error { return WriteCSV(w, r) },
	"jsonl":     func(w io.Writer, r *Report, _ lang.Language) error { return WriteJSONL(w, r) },
}

func write(t *testing.T, kind string, r *Report, l lang.Language) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writers[kind](&b, r.In(l), l); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFormats(t *testing.T) {
	for kind := range writers {
		golden(t, "fleet."+kind, write(t, kind, declared(), lang.En))
	}
	golden(t, "fleet.zh.md", write(t, "md", declared(), lang.Zh))
}

func TestControlCharactersAreInertInEveryFormat(t *testing.T) {
	for kind := range writers {
		out := string(write(t, kind, hostile(), lang.En))
		if strings.ContainsAny(out, "\x1b\x00") {
			t.Errorf("%s holds a control character", kind)
		}
	}
}

func TestJUnitIsReadByAParser(t *testing.T) {
	for name, r := range map[string]*Report{"sample": declared(), "hostile": hostile(), "empty": {}} {
		suites, err := junit.Ingest(write(t, "junit.xml", r, lang.En))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(suites) != len(r.Rigs) {
			t.Errorf("%s: %d suites of %d rigs", name, len(suites), len(r.Rigs))
		}
	}
	suites, _ := junit.Ingest(write(t, "junit.xml", declared(), lang.En))
	got := map[string]junit.Status{}
	for _, c := range suites[0].Tests {
		got[c.Name] = c.Status
	}
	for check, want := range map[string]junit.Status{
		"firmware.resizable-bar": junit.StatusFailed,
		"nccl.all-reduce":        junit.StatusPassed, // a warn
		"pcie.acs":               junit.StatusError,  // unknown, required
		"chassis.slot-spacing":   junit.StatusSkipped,
		"cpu.cores":              junit.StatusPassed,
	} {
		if got[check] != want {
			t.Errorf("%s is %s, want %s", check, got[check], want)
		}
	}
	if s := suites[1].Tests[0]; s.Status != junit.StatusError || s.Name != "connection" {
		t.Errorf("an unreachable rig is %v", s)
	}
}

func TestSARIFMatchesItsSchema(t *testing.T) {
	raw, err := os.ReadFile("testdata/sarif-2.1.0.schema.json") // OASIS SARIF 2.1.0, errata 01
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Report{"sample": declared(), "no inventory": sample(), "hostile": hostile(), "empty": {Run: sample().Run}} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(write(t, "sarif", r, lang.En)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSARIFPointsAtTheDeclaration(t *testing.T) {
	var log sarifLog
	if err := json.Unmarshal(write(t, "sarif", declared(), lang.En), &log); err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for _, r := range log.Runs[0].Results {
		p := r.Locations[0].Physical
		at[r.RuleID] = p.Region.StartLine
		if p.Artifact.URI != "lab/my%20rigs.hcl" {
			t.Errorf("uri %s", p.Artifact.URI)
		}
		if r.RuleID != log.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID {
			t.Errorf("%s has the index of another rule", r.RuleID)
		}
		if (r.Kind == "open") != (r.Level == "none") {
			t.Errorf("%s: kind %s with level %s", r.RuleID, r.Kind, r.Level)
		}
	}
	if at["chassis.slot-spacing"] != 44 || at["pcie.width"] != 31 {
		t.Errorf("results point at %v", at)
	}
	if _, ok := at["cpu.cores"]; ok {
		t.Error("a pass is no result")
	}
}

func TestPrometheusIsReadByAParser(t *testing.T) {
	for name, r := range map[string]*Report{"sample": declared(), "hostile": hostile(), "named": named("a\"b\\c\nd\xff")} {
		p := expfmt.NewTextParser(model.UTF8Validation)
		families, err := p.TextToMetricFamilies(bytes.NewReader(write(t, "prom", r, lang.En)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		reachable := families["preflight_rig_reachable"].GetMetric()
		if len(reachable) != len(r.Rigs) {
			t.Errorf("%s: %d rigs, want %d", name, len(reachable), len(r.Rigs))
		}
		if got := reachable[1].GetGauge().GetValue(); got != 0 {
			t.Errorf("%s: an unreachable rig has %v", name, got)
		}
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(write(t, "prom", declared(), lang.En)))
	if err != nil {
		t.Fatal(err)
	}
	bars := families["preflight_card_bar1_bytes"].GetMetric()
	if len(bars) != 1 || bars[0].GetGauge().GetValue() != 256<<20 {
		t.Errorf("BAR1 of the one card that told it: %v", bars)
	}
	if got := families["preflight_nccl_busbw_bytes_per_second"].GetMetric()[0].GetGauge().GetValue(); got != 7.1e9 {
		t.Errorf("busbw %v", got)
	}
}

func named(name string) *Report {
	r := sample()
	r.Rigs[0].Name = name
	return r
}

func TestCSVHasARowAFindingAndNoFormula(t *testing.T) {
	r := hostile()
	rows, err := csv.NewReader(bytes.NewReader(write(t, "csv", r, lang.En))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + len(r.Rigs[0].Findings) + 1; len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
				t.Errorf("a spreadsheet would run %q", cell)
			}
		}
	}
}

// What comes as the rigs finish and what comes at the end is together what the whole report says.
func TestJSONLinesAddUp(t *testing.T) {
	r := declared()
	r.Rigs[0].Findings = append(r.Rigs[0].Findings, checks.Finding{ID: "cluster.consistency@rig", Check: "cluster.consistency", Subject: "rig", Verdict: checks.Pass, Summary: "alike"})
	var ids []string
	var types []string
	for l := range bytes.Lines(write(t, "jsonl", r, lang.En)) {
		var line Line
		if err := json.Unmarshal(l, &line); err != nil {
			t.Fatal(err)
		}
		types = append(types, line.Type)
		switch {
		case line.Rig != nil && line.Rig.Name == "node-a":
			for _, f := range line.Rig.Findings {
				ids = append(ids, f.ID)
			}
		case line.Across != nil:
			for _, f := range line.Across.Findings {
				ids = append(ids, f.ID)
			}
		}
	}
	if want := []string{"rig", "rig", "across", "run"}; !slices.Equal(types, want) {
		t.Errorf("lines are %v, want %v", types, want)
	}
	var want []string
	for _, f := range r.Rigs[0].Findings {
		want = append(want, f.ID)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("findings are %v, want %v", ids, want)
	}
}
