package catalog

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Page is one table of the catalogue as it is written, for people to look things up in.
type Page struct {
	Name    string   // what `preflight catalog` calls it: "gpu"
	Title   string   // a few words
	Columns []string // in the order of the file
	Keys    []string // columns by which a row is asked for; the first one names it in lists
	Pattern string   // a column that holds a regular expression for what is asked; "" for none
	Rows    []Row
}

// Row is one line of a table, by column.
type Row map[string]string

// pages are the tables, in the order of the command's list.
var pages = []struct {
	name, title string
	data        *[]byte
	keys        []string
	pattern     string
}{
	{"gpu", "cards", &gpusCSV, []string{"slug", "pci_device_id", "name"}, ""},
	{"cpu", "families of processors", &cpusCSV, []string{"family", "codename"}, "regex"},
	{"cpu-model", "processors by exact name", &cpuModelsCSV, []string{"name"}, ""},
	{"switch", "PCIe switches, ports and bridges", &switchesCSV, []string{"vendor_device", "name"}, ""},
	{"power", "watts of components, mains and plugs", &powerCSV, []string{"key", "category"}, ""},
	{"xid", "NVIDIA's Xid errors", &xidsCSV, []string{"xid", "name"}, ""},
	{"driver", "what generations and CUDA versions ask of the driver", &driversCSV, []string{"key", "kind"}, ""},
}

// Pages returns every embedded table.
func Pages() ([]Page, error) {
	var out []Page
	for _, p := range pages {
		page, err := ReadPage(p.name, p.title, *p.data, p.keys, p.pattern)
		if err != nil {
			return nil, err
		}
		out = append(out, page)
	}
	return out, nil
}

// ReadPage reads a table of CSV whose first line names the columns.
func ReadPage(name, title string, data []byte, keys []string, pattern string) (Page, error) {
	p := Page{Name: name, Title: title, Keys: keys, Pattern: pattern}
	rows, err := table(name, data)
	if err != nil {
		return p, err
	}
	if p.Columns, err = csv.NewReader(bytes.NewReader(data)).Read(); err != nil {
		return p, fmt.Errorf("catalogue %s: %w", name, err)
	}
	for _, k := range keys {
		if !slices.Contains(p.Columns, k) {
			return p, fmt.Errorf("catalogue %s: no column %s", name, k)
		}
	}
	for _, r := range rows {
		p.Rows = append(p.Rows, r)
	}
	return p, nil
}

// Find returns the rows that are meant by a query, best kind of match only: a key that equals it; else the row whose
// pattern matches it; else the rows in whose keys all its words begin a word.
func (p Page) Find(query string) []Row {
	query = strings.ToLower(strings.TrimSpace(query))
	for _, match := range []func(Row) bool{
		func(r Row) bool { return p.equals(r, query) },
		func(r Row) bool { return p.matches(r, query) },
		func(r Row) bool { return p.holds(r, query) },
	} {
		var out []Row
		for _, r := range p.Rows {
			if match(r) {
				out = append(out, r)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

func (p Page) equals(r Row, query string) bool {
	for _, k := range p.Keys {
		if v := strings.ToLower(r[k]); v == query || strings.HasSuffix(v, ":"+query) && len(query) == 4 {
			return true
		}
	}
	return false
}

// matches tries the row's pattern, which is written for a processor's full name: letters as the kernel prints them.
func (p Page) matches(r Row, query string) bool {
	if p.Pattern == "" {
		return false
	}
	re, err := regexp.Compile("(?i)" + r[p.Pattern])
	return err == nil && re.MatchString(query)
}

func (p Page) holds(r Row, query string) bool {
	var words []string
	for _, k := range p.Keys {
		words = append(words, wordsOf(r[k])...)
	}
	asked := wordsOf(query)
	for _, a := range asked {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, a) }) {
			return false
		}
	}
	return len(asked) > 0
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' })
}

// Add puts declared rows before the embedded ones, as With does for checks.
func (p *Page) Add(a Additions, source string) {
	var rows []Row
	switch p.Name {
	case "gpu":
		for _, g := range a.GPUs {
			rows = append(rows, gpuRow(g, source))
			p.Rows = slices.DeleteFunc(slices.Clone(p.Rows), func(r Row) bool { return r["slug"] == g.Slug })
		}
	case "cpu":
		for _, c := range a.CPUs {
			rows = append(rows, Row{
				"family": c.Family, "regex": c.Match.String(), "pcie_gen": figure(c.Gen), "cpu_pcie_lanes_total": figure(c.Lanes), "lanes_usable_for_slots": figure(c.Usable),
				"memory_channels": figure(c.Channels), "tdp_w": figure(c.TDPWatts), "max_turbo_or_ppt_w": figure(c.PeakWatts), "confidence": "declared in " + source, "source": c.Source,
			})
		}
	}
	p.Rows = append(rows, p.Rows...)
}

func gpuRow(g GPU, source string) Row {
	id := g.ID
	if id != "" {
		id = "10de:" + id
	}
	return Row{
		"slug": g.Slug, "pci_device_id": id, "name": g.Name, "architecture": g.Arch, "compute_capability": g.Compute, "memory_mib": figure(g.MemoryMiB),
		"tdp_w": figure(g.TDPWatts), "power_limit_min_w": figure(g.LimitMin), "power_limit_max_w": figure(g.LimitMax), "pcie_gen": figure(g.Gen), "pcie_width": figure(g.Width),
		"rebar_supported": g.ReBAR, "bar1_without_rebar_mib": figure(g.BAR1Small), "bar1_with_rebar_mib": figure(g.BAR1Large), "nvlink": g.NVLink,
		"nvlink_total_gb_s": figure(g.NVLinkGBs), "p2p_over_pcie": g.P2P, "fp16_dense_tflops": figure(g.FP16TFLOPS), "memory_bandwidth_gb_s": figure(g.MemoryGBs),
		"typical_slot_width": figure(g.Thickness), "form": g.Form, "ecc": g.HasECC, "power_connector": g.Connector, "notes": g.Notes,
		"confidence": "declared in " + source, "source": g.Source,
	}
}

// figure is a number as a cell; zero is not known.
func figure[N int | int64 | float64](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
