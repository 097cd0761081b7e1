package html

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	nethtml "golang.org/x/net/html"

	"preflight/checks"
	"preflight/internal/facts"
	"preflight/internal/lang"
	"preflight/internal/report"
)

const evil = "\"onload=alert(1) <script>alert(1)</script></style></svg> \x1b[2J\u202eabc"

// switched is a rig with two sockets, a switch with two cards below one socket, one card below the other, and a lone root port.
func switched() *facts.Host {
	of := func(n int) facts.Fact[int] { return facts.Of(n, "t") }
	gts := func(v float64) facts.Fact[float64] { return facts.Of(v, "t") }
	link := func(now, most int) facts.Link {
		return facts.Link{Width: of(now), MaxWidth: of(most), Speed: gts(16), MaxSpeed: gts(16)}
	}
	dev := func(bdf, class, port string, socket int, l facts.Link, chain ...string) facts.Device {
		return facts.Device{BDF: bdf, Class: class, Vendor: "10de", Product: "2684", Chain: chain, PortType: facts.Of(port, "t"), Socket: of(socket), Link: l}
	}
	h := &facts.Host{At: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)}
	h.PCI = []facts.Device{
		dev("0000:00:01.0", "060400", "root", 0, link(16, 16)),
		dev("0000:01:00.0", "060400", "upstream", 0, link(16, 16), "0000:00:01.0"),
		dev("0000:02:00.0", "060400", "downstream", 0, link(16, 16), "0000:00:01.0", "0000:01:00.0"),
		dev("0000:02:01.0", "060400", "downstream", 0, link(16, 16), "0000:00:01.0", "0000:01:00.0"),
		dev("0000:40:01.0", "060400", "root", 1, link(8, 16)),
		dev("0000:60:01.0", "060400", "root", 1, link(4, 4)),
	}
	for i, at := range []struct {
		bdf   string
		lanes int
		chain []string
	}{
		{"0000:03:00.0", 16, []string{"0000:00:01.0", "0000:01:00.0", "0000:02:00.0"}},
		{"0000:04:00.0", 16, []string{"0000:00:01.0", "0000:01:00.0", "0000:02:01.0"}},
		{"0000:41:00.0", 8, []string{"0000:40:01.0"}},
	} {
		d := dev(at.bdf, "030000", "endpoint", i/2, link(at.lanes, 16), at.chain...)
		h.PCI = append(h.PCI, d)
		h.Cards = append(h.Cards, facts.Card{
			Device: d, Name: facts.Of("GeForce RTX 4090", "t"), Slug: facts.Of("rtx-4090", "t"), MemoryMiB: facts.Of(int64(24564), "t"),
			BAR1MiB: facts.Of(int64(256), "t"), PowerLimit: gts(450), PowerDefault: gts(450), Gen: facts.SMILink{DeviceMax: of(4)}, Index: of(i),
		})
	}
	h.CPU.Model, h.CPU.Sockets = facts.Of("AMD EPYC 7542 32-Core Processor", "t"), of(2)
	h.Slots = []facts.Slot{{Designation: "PCIE1", BDF: "0000:03:00.0", Width: 16}, {Designation: "PCIE2", Width: 8}}
	h.Copies = []facts.PeerCopy{{From: "0000:03:00.0", To: "0000:04:00.0", Path: "p2p", Result: "ok", Best: 21.5}, {From: "0000:04:00.0", To: "0000:03:00.0", Path: "p2p", Result: "corrupt"}}
	h.NCCL = []facts.NCCLRun{{Engine: "native", Layout: "single", Ranks: 3, Transport: "SHM", Rows: []facts.NCCLRow{{Bytes: 1 << 20, BusBW: 3.25}, {Bytes: 256 << 20, BusBW: 5.75}}}}
	return h
}

// reportOf is a report of one rig, judged by the real checks.
func reportOf(h *facts.Host, name string) *report.Report {
	policy := checks.PolicyFor(nil, len(h.Cards))
	figures := checks.FiguresOf(nil, h, policy, catalogue)
	g := report.Rig{Name: name, Verdict: checks.Fail, Host: h, Facts: facts.Tree(h), Findings: checks.Run(nil, h, policy, catalogue), Figures: &figures}
	r := &report.Report{Schema: report.Schema, Tool: report.Tool{Name: "preflight", Version: "test"}, Run: report.Run{At: h.At}, Rigs: []report.Rig{g}}
	r.Finish()
	return r
}

func pageOf(t *testing.T, r *report.Report, l lang.Language) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r.In(l), l); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// attributes lists the values of an attribute, in order.
func attributes(t *testing.T, page, name string) []string {
	t.Helper()
	doc, err := nethtml.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if a.Key == name {
				out = append(out, a.Val)
			}
		}
	}
	return out
}

// texts are the words of each element of a kind.
func texts(t *testing.T, page, element string) []string {
	t.Helper()
	doc, err := nethtml.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for n := range doc.Descendants() {
		if n.Type == nethtml.ElementNode && n.Data == element {
			var b strings.Builder
			for c := range n.Descendants() {
				if c.Type == nethtml.TextNode {
					b.WriteString(c.Data)
				}
			}
			out = append(out, b.String())
		}
	}
	return out
}

func TestEveryCardBridgeAndSlotIsThereOnce(t *testing.T) {
	h := switched()
	page := pageOf(t, reportOf(h, "node-a"), lang.En)
	start := strings.Index(page, `<svg class="tree"`)
	tree := page[start : start+strings.Index(page[start:], "</svg>")]
	ids := attributes(t, tree, "data-id")
	for _, d := range h.PCI {
		if n := countOf(ids, d.BDF); n != 1 {
			t.Errorf("%s is in the tree %d times", d.BDF, n)
		}
	}
	if len(ids) != len(h.PCI) {
		t.Errorf("%d things in the tree, %d functions", len(ids), len(h.PCI))
	}
	all := attributes(t, page, "data-id")
	for _, s := range h.Slots {
		if n := countOf(all, s.Designation); n != 1 {
			t.Errorf("slot %s is drawn %d times", s.Designation, n)
		}
	}
}

func countOf(list []string, want string) int {
	n := 0
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}

// The figures of the tree are those of the report: each link once, with what it runs and what marks it.
func TestLinksOfTheTree(t *testing.T) {
	r := reportOf(switched(), "node-a")
	page := pageOf(t, r, lang.En)
	links := attributes(t, page, "data-link")
	for _, f := range r.Rigs[0].Figures.Links {
		if countOf(links, f.Lower) != 1 {
			t.Errorf("the link of %s is drawn %d times", f.Lower, countOf(links, f.Lower))
		}
		want := fmt.Sprintf(`data-link="%s"><path d="[^"]*" class="([^"]*)">(<title>[^<]*</title>)?</path><text[^>]*>x%d Gen%d</text>`, f.Lower, f.Lanes, f.Gen)
		m := regexp.MustCompile(want).FindStringSubmatch(page)
		if m == nil {
			t.Errorf("the link of %s does not say x%d Gen%d", f.Lower, f.Lanes, f.Gen)
			continue
		}
		if strings.Contains(m[1], "bottleneck") != f.Bottleneck || strings.Contains(m[1], "shared") != (f.Cards > 1) {
			t.Errorf("%s is drawn as %q, and the report says %+v", f.Lower, m[1], f)
		}
	}
	by := map[string]checks.LinkFigure{}
	for _, f := range r.Rigs[0].Figures.Links {
		by[f.Lower] = f
	}
	if !by["0000:41:00.0"].Bottleneck || by["0000:03:00.0"].Bottleneck {
		t.Errorf("the narrow link is the bottleneck, and no other: %+v", by)
	}
	if by["0000:01:00.0"].Cards != 2 {
		t.Errorf("the uplink carries %d cards", by["0000:01:00.0"].Cards)
	}
}

// What is drawn stands in the tables as well.
func TestNumbersAreWords(t *testing.T) {
	r := reportOf(switched(), "node-a")
	page := pageOf(t, r, lang.En)
	cells := texts(t, page, "td")
	want := []string{"256 MiB", "24564 MiB", "21.50", "3.25", "5.75", "1 MiB", "PCIE2", "p2p: corrupt"}
	for _, l := range r.Rigs[0].Figures.Power[0].Lines {
		want = append(want, num(l.Watts))
	}
	for _, f := range r.Rigs[0].Figures.AllReduce {
		want = append(want, fmt.Sprintf("%.2f", f.Links), fmt.Sprintf("%.2f", f.Pass))
	}
	for _, w := range want {
		if !slices.Contains(cells, w) {
			t.Errorf("no table says %q", w)
		}
	}
	for _, svg := range regexp.MustCompile(`<svg[^>]*>`).FindAllString(page, -1) {
		if !strings.Contains(svg, `role="img"`) || !strings.Contains(svg, "aria-label=") {
			t.Errorf("a picture without words: %s", svg)
		}
	}
}

func TestHostsWordsAreInert(t *testing.T) {
	h := switched()
	h.Cards[0].Name, h.BIOS.Version, h.Slots[0].Designation = facts.Of(evil, "t"), facts.Of(evil, "t"), evil
	h.PCI[0].Label, h.NCCL[0].Engine, h.Board.Name = evil, evil, facts.Of(evil, "t")
	r := reportOf(h, evil)
	g := &r.Rigs[0]
	g.Notes = []string{evil}
	g.Findings = append(g.Findings, checks.Finding{ID: "x@y", Check: "pcie.width", Subject: evil, Verdict: checks.Fail, Summary: evil, Observed: evil, Expected: evil, Note: evil, Evidence: []checks.Evidence{{Source: evil, Value: evil}}, Remedy: "x/y"})
	g.Fixes = []report.Fix{{Number: 1, Code: "x/y", Title: evil, Reboot: evil, Verify: evil, Steps: []report.Step{{Text: evil, Command: evil, Menu: evil}}}}
	r.Rigs = append(r.Rigs, report.Rig{Name: evil, Verdict: checks.Unknown, Error: &report.Failure{Phase: "connect", Summary: evil, Advice: []string{evil}}})
	r.Finish()
	for _, l := range []lang.Language{lang.En, lang.Zh} {
		page := pageOf(t, r, l)
		if strings.ContainsAny(page, "\x1b\u202e") {
			t.Error("a control character came through")
		}
		doc, err := nethtml.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			if n.Type == nethtml.ElementNode && slices.Contains([]string{"script", "iframe", "object", "embed", "img", "link", "form", "base"}, n.Data) {
				t.Errorf("the page has an element %s", n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
					t.Errorf("the page has an attribute %s=%q", a.Key, a.Val)
				}
			}
		}
	}
}

// The page may have its own style and nothing else; the hash is that of the style as it stands in the page.
func TestPolicyFitsTheStyle(t *testing.T) {
	page := pageOf(t, reportOf(switched(), "node-a"), lang.En)
	start := strings.Index(page, "<style>") + len("<style>")
	sum := sha256.Sum256([]byte(page[start : start+strings.Index(page[start:], "</style>")]))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	if got := attributes(t, page, "content")[0]; !strings.HasPrefix(got, want) {
		t.Errorf("policy %s, want %s", got, want)
	}
	if m := regexp.MustCompile(`(https?:)?//[a-z]`).FindString(page); m != "" {
		t.Errorf("the page names %q: it must need no network", m)
	}
}

// Every label is in the phrasebook: the templates' and the pictures'.
func TestLabelsAreChinese(t *testing.T) {
	said := regexp.MustCompile("(?:sayf? |l\\.Sayf?\\(|none\\(l, |add\\()\"([^\"]+)\"")
	names, err := filepath.Glob("*.go*")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range said.FindAllStringSubmatch(string(raw), -1) {
			found++
			if text := m[1]; !lang.Zh.Speaks(text) {
				t.Errorf("%s: %q has no Chinese", name, text)
			}
		}
	}
	if found < 80 {
		t.Errorf("only %d labels were found", found)
	}
}

// What is absent is told, not drawn as zero.
func TestNothingIsDrawnOfNothing(t *testing.T) {
	h := &facts.Host{At: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), Cards: []facts.Card{{Device: facts.Device{BDF: "0000:01:00.0"}}}}
	page := pageOf(t, reportOf(h, "node-a"), lang.En)
	if strings.Contains(page, "<svg") {
		t.Error("a picture was drawn of nothing")
	}
	if n := strings.Count(page, `<p class="why">`); n != 6 {
		t.Errorf("%d pictures say why they are not drawn, want 6", n)
	}
}

func TestManyRigsFold(t *testing.T) {
	r := fleetOf(300)
	page := pageOf(t, r, lang.En)
	if n := strings.Count(page, `<details class="whole">`); n != 0 { // all fail: none is folded
		t.Errorf("%d rigs that fail are folded", n)
	}
	for i := range r.Rigs {
		r.Rigs[i].Verdict = checks.Pass
	}
	page = pageOf(t, r, lang.En)
	if n := strings.Count(page, `<details class="whole">`); n != 300 {
		t.Errorf("%d of 300 healthy rigs are folded", n)
	}
	if n := strings.Count(page, `<th scope="row">`); n != 300 {
		t.Errorf("%d rows in the summary", n)
	}
}

func fleetOf(n int) *report.Report {
	r := reportOf(switched(), "node-a")
	one := r.Rigs[0]
	r.Rigs = nil
	for i := range n {
		one.Name = fmt.Sprintf("node-%03d", i)
		r.Rigs = append(r.Rigs, one)
	}
	r.Finish()
	return r
}

func BenchmarkWrite300Rigs(b *testing.B) {
	r := fleetOf(300)
	for b.Loop() {
		var out bytes.Buffer
		if err := Write(&out, r, lang.En); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(out.Len())/300, "B/rig")
	}
}
