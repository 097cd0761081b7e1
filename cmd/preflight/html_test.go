package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"preflight/internal/report"
)

// demoReport runs the demo with a fault and gives its report for people and the one for programs.
func demoReport(t *testing.T, args ...string) (page string, r report.Report, path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "report.html")
	raw := filepath.Join(dir, "report.json")
	env := &environment{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	root := newRoot(env)
	root.SetArgs(append([]string{"demo", "--format", "html=" + path + ",json=" + raw}, args...))
	if err := root.ExecuteContext(context.Background()); err != nil && !strings.HasPrefix(err.Error(), "exit 3") {
		t.Fatalf("%v: %s", err, env.stderr)
	}
	html, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return string(html), r, path
}

// What the page draws of simulated rigs is what the JSON report of the same run says, number by number.
func TestPageEqualsJSON(t *testing.T) {
	for _, args := range [][]string{{"--cards", "2", "--fault", "rebar-vbios"}, {"--cards", "8", "--fault", "narrow-slot,psu-short"}} {
		page, r, _ := demoReport(t, args...)
		g := r.Rigs[0]
		pci, _ := g.Facts["pci"].([]any)
		for _, d := range pci {
			d := d.(map[string]any)
			bdf := d["bdf"].(string)
			bridge := strings.HasPrefix(d["class"].(string), "0604")
			if n := strings.Count(treeOf(page), `data-id="`+bdf+`"`); bridge && n != 1 {
				t.Errorf("%v: bridge %s is drawn %d times", args, bdf, n)
			}
		}
		cards, _ := g.Facts["cards"].([]any)
		for _, c := range cards {
			c := c.(map[string]any)
			bdf := c["bdf"].(string)
			if n := strings.Count(treeOf(page), `data-id="`+bdf+`"`); n != 1 {
				t.Errorf("%v: card %s is drawn %d times", args, bdf, n)
			}
			bar := c["bar1"].(map[string]any)["value"].(float64)
			memory := c["memory"].(map[string]any)["value"].(float64)
			if want := fmt.Sprintf("%s: BAR1 %.0f MiB, memory %.0f MiB", bdf, bar, memory); !strings.Contains(page, want) {
				t.Errorf("%v: the page does not say %q", args, want)
			}
		}
		for _, f := range g.Figures.Links {
			want := regexp.MustCompile(fmt.Sprintf(`data-link="%s">.*?>x%d Gen%d</text>`, f.Lower, f.Lanes, f.Gen))
			if !want.MatchString(treeOf(page)) {
				t.Errorf("%v: the link of %s is not drawn as x%d Gen%d", args, f.Lower, f.Lanes, f.Gen)
			}
		}
		for _, p := range g.Figures.Places {
			if !strings.Contains(page, `data-id="`+p.Name+`"`) {
				t.Errorf("%v: slot %s is not drawn", args, p.Name)
			}
		}
		for _, l := range g.Figures.Power[0].Lines {
			if want := fmt.Sprintf("%s: %s W", l.What, trimmed(l.Watts)); !strings.Contains(page, want) {
				t.Errorf("%v: the page does not say %q", args, want)
			}
		}
	}
}

func trimmed(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

func treeOf(page string) string {
	_, after, _ := strings.Cut(page, `<svg class="tree"`)
	tree, _, _ := strings.Cut(after, "</svg>")
	return tree
}

// A browser opens the demo's page: it shows the faults, and has nothing to complain of.
func TestBrowserShowsTheFaults(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			browser = p
			break
		}
	}
	if browser == "" {
		t.Skip("no chromium is installed")
	}
	_, r, path := demoReport(t, "--cards", "4", "--fault", "narrow-slot,psu-short")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--dump-dom", "file://"+path)
	var dom, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &dom, &log
	if err := cmd.Run(); err != nil {
		t.Skipf("the browser does not run here: %v: %.300s", err, log.String())
	}
	if strings.Contains(log.String(), "CONSOLE") {
		t.Errorf("the browser complains: %s", log.String())
	}
	for _, f := range r.Rigs[0].Findings {
		if f.Verdict == "fail" && !strings.Contains(dom.String(), f.Summary) {
			t.Errorf("the page does not show %s: %s", f.ID, f.Summary)
		}
	}
	if !strings.Contains(dom.String(), "bottleneck") {
		t.Error("the narrow link is not marked")
	}
}
