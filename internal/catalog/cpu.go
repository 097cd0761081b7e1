package catalog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// CPU is a family of processors; lanes, channels and watts are per socket, zero is unknown.
type CPU struct {
	Match     *regexp.Regexp // against the "model name" of /proc/cpuinfo
	Family    string
	Codename  string
	Socket    string
	Gen       int
	Lanes     int // all lanes of the processor
	Usable    int // lanes a board can bring to slots and M.2, the chipset link left out
	Channels  int
	TDPWatts  float64
	PeakWatts float64 // PPT or PL2
	Confirmed map[string]bool
	Source    string
}

// CPUModel is one exact model.
type CPUModel struct {
	Name      string
	TDPWatts  float64
	PeakWatts float64
	Lanes     int
	Channels  int
	Source    string
}

func addCPUs(c *Catalog, rows []map[string]string) error {
	for _, r := range rows {
		re, err := regexp.Compile(r["regex"])
		if err != nil {
			return fmt.Errorf("row %s: %w", r["order"], err)
		}
		c.CPUs = append(c.CPUs, CPU{
			Match: re, Family: r["family"], Codename: r["codename"], Socket: r["socket"], Gen: integer(r["pcie_gen"]),
			Lanes: integer(r["cpu_pcie_lanes_total"]), Usable: integer(r["lanes_usable_for_slots"]), Channels: integer(r["memory_channels"]),
			TDPWatts: number(r["tdp_w"]), PeakWatts: number(r["max_turbo_or_ppt_w"]),
			Confirmed: fields(r["confirmed_fields"]), Source: r["source"],
		})
	}
	return nil
}

// CPU finds the family of a "model name" line; rows are tried in order, the first match wins.
func (c *Catalog) CPU(model string) (CPU, bool) {
	for _, cpu := range c.CPUs {
		if cpu.Match.MatchString(model) {
			return cpu, true
		}
	}
	return CPU{}, false
}

// cpuModels keeps what was found in the embedded table, which never changes: the hosts of a fleet have few models, and
// several checks ask for each.
var cpuModels sync.Map // "model name" -> CPUModel, empty when there is none

// CPUModel finds the exact model of a "model name" line.
func (c *Catalog) CPUModel(model string) (CPUModel, bool) {
	known, ok := cpuModels.Load(model)
	if !ok {
		found, _ := findCPUModel(model)
		known, _ = cpuModels.LoadOrStore(model, found)
	}
	found := known.(CPUModel)
	return found, found.Name != ""
}

// findCPUModel looks a model up. The table is long and a run asks for one processor, so that only lines with the word
// that tells most are read.
func findCPUModel(model string) (CPUModel, bool) {
	key := modelKey(model)
	word := tellingWord(key)
	if word == "" {
		return CPUModel{}, false
	}
	head, rest, _ := bytes.Cut(cpuModelsCSV, []byte("\n"))
	few := slices.Clip(head)
	for line := range bytes.Lines(rest) {
		if bytes.Contains(bytes.ToLower(line), []byte(word)) {
			few = append(append(few, '\n'), bytes.TrimRight(line, "\n")...)
		}
	}
	rows, err := table("cpu_models.csv", few)
	var found CPUModel
	for _, r := range rows {
		if modelKey(r["name"]) == key { // of two rows the later one counts
			found = CPUModel{
				Name: r["name"], TDPWatts: number(r["tdp_w"]), PeakWatts: number(r["max_turbo_w"]),
				Lanes: integer(r["pcie_lanes"]), Channels: integer(r["memory_channels"]), Source: r["source"],
			}
		}
	}
	return found, err == nil && found.Name != ""
}

// tellingWord is the longest word of a key with a digit in it, else the longest: "i9-10900x", "7542".
func tellingWord(key string) string {
	best := ""
	for _, w := range strings.Fields(key) {
		numbered, was := strings.ContainsAny(w, "0123456789"), strings.ContainsAny(best, "0123456789")
		if numbered && !was || numbered == was && len(w) > len(best) {
			best = w
		}
	}
	return best
}

var clutter = regexp.MustCompile(`(?i)\((r|tm)\)|®|™|\bcpu\b|@.*$|\bprocessor\b|\b\d+-cores?\b|\bw/ .*$|\bwith radeon.*$|\b\d+(st|nd|rd|th) gen\b|\bx-series\b`)

// modelKey reduces a model name to what two spellings of it share.
func modelKey(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(clutter.ReplaceAllString(s, " "))), " ")
}
