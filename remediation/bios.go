package remediation

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"preflight/internal/catalog"
	"preflight/internal/lang"
)

// biosTable knows where options are.
type biosTable struct {
	rows    []biosRow
	options map[string]optionHCL
}

// biosRow is a line of data/bios_paths.csv: where one family of boards keeps one option.
type biosRow struct {
	vendor, board pattern // "": any
	family        string
	option        string // key
	path          string // "Advanced > PCI Subsystem Settings"; "" when only the name is known
	name          string
	value         string
	notes         string
	confirmed     bool // seen in a public source; otherwise recalled
	source        string
}

// optionHCL is what is said of an option when the board is not in the table.
type optionHCL struct {
	Key   string   `hcl:"key,label"`
	Place string   `hcl:"place"` // the page that most makers put it on
	Names []string `hcl:"names"` // what they call it, the most common first
	Value string   `hcl:"value"`
}

// readBIOS reads the table; strict compiles every pattern of it as well.
func readBIOS(src []byte, options []optionHCL, strict bool) (biosTable, error) {
	t := biosTable{options: map[string]optionHCL{}}
	for _, o := range options {
		t.options[o.Key] = o
	}
	records, err := csv.NewReader(bytes.NewReader(src)).ReadAll()
	if err != nil {
		return t, fmt.Errorf("bios_paths.csv: %w", err)
	}
	if len(records) == 0 {
		return t, fmt.Errorf("bios_paths.csv is empty")
	}
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	for line, rec := range records[1:] {
		get := func(name string) string { return rec[column[name]] }
		row := biosRow{
			family: get("bios_family"), option: get("option"), path: get("menu_path"), name: get("option_name"), value: get("recommended_value"),
			notes: get("notes"), confirmed: get("confidence") == "confirmed", source: get("source"),
		}
		row.vendor, row.board = pattern(get("vendor_pattern")), pattern(get("board_pattern"))
		if strict {
			if err := errors.Join(row.vendor.broken(), row.board.broken()); err != nil {
				return t, fmt.Errorf("bios_paths.csv line %d: %w", line+2, err)
			}
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

// pattern is an expression that is compiled when it is asked: a run asks for a few of some hundred, and compiling them all
// took a third of its time. Loading the whole catalogue compiles each.
type pattern string

func (p pattern) broken() error {
	_, err := regexp.Compile(string(p))
	return err
}

func (p pattern) matches(s string) bool {
	re, err := regexp.Compile(string(p))
	return err == nil && re.MatchString(s)
}

// menu is the way to an option on a board, as "A ▸ B ▸ Option = Value".
func (t biosTable) menu(l lang.Language, key string, b Board) string {
	rows := t.find(key, b)
	if len(rows) == 0 {
		return t.generic(l, key)
	}
	var ways []string
	for _, r := range rows {
		way := r.way(l)
		if len(rows) > 1 {
			way += " (" + r.family + ")"
		}
		if !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	return strings.Join(ways, l.Say(", or "))
}

// find returns the most specific rows that fit: one that names the board beats one for all of a vendor. Several are
// left where a maker's AMD and Intel boards differ and the board's name does not tell which it is.
func (t biosTable) find(key string, b Board) []biosRow {
	var best []biosRow
	level := 0
	for _, r := range t.rows {
		if r.option != key || r.vendor == "" || !r.vendor.matches(b.Vendor) || (r.board != "" && !r.board.matches(b.Name)) {
			continue
		}
		l := 1
		if r.board != "" {
			l = 2
		}
		switch {
		case l > level:
			best, level = []biosRow{r}, l
		case l == level:
			best = append(best, r)
		}
	}
	return best
}

func (r biosRow) way(l lang.Language) string {
	var steps []string
	for _, s := range strings.Split(r.path, ">") {
		if s = strings.TrimSpace(s); s != "" {
			steps = append(steps, s)
		}
	}
	way := strings.Join(append(steps, r.name), " ▸ ") + " = " + l.Say(r.value)
	switch {
	case len(steps) == 0:
		way += l.Say(" (its menu is not known)")
	case !r.confirmed:
		way += l.Say(" (not checked on a board)")
	}
	return way
}

// generic is what can be said when the board is not known.
func (t biosTable) generic(l lang.Language, key string) string {
	o, ok := t.options[key]
	if !ok {
		return ""
	}
	way := l.Say(o.Place) + " ▸ " + o.Names[0] + " = " + l.Say(o.Value)
	if len(o.Names) > 1 {
		way += l.Sayf(" (other makers: %s)", strings.Join(o.Names[1:], ", "))
	}
	return way
}

// BIOSPage is the table of BIOS menus, for people to look things up in.
func BIOSPage() (catalog.Page, error) {
	raw, err := data.ReadFile("data/bios_paths.csv")
	if err != nil {
		return catalog.Page{}, err
	}
	return catalog.ReadPage("bios", "menus of boards' BIOSes", raw, []string{"bios_family", "option", "option_name", "vendor_pattern"}, "")
}
