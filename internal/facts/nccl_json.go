package facts

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ncclJSON is the file that nccl-tests writes with -J (v2.17.4 and later). Its `env` holds the whole environment of
// the process: it is never decoded, so that it can never reach a snapshot or a report.
type ncclJSON struct {
	Version string `json:"version"`
	NCCL    any    `json:"nccl_version"`
	Devices []struct {
		Rank   int    `json:"rank"`
		Hex    string `json:"device_hex"`
		Device any    `json:"device"`
		Info   string `json:"device_info"`
	} `json:"devices"`
	Results []struct {
		Size int64     `json:"size"`
		Out  ncclPlace `json:"out_of_place"`
		In   ncclPlace `json:"in_place"`
	} `json:"results"`
	Bounds struct {
		Count int64 `json:"count"`
	} `json:"out_of_bounds"`
	Errors []any `json:"errors"`
}

type ncclPlace struct {
	Time  *float64 `json:"time"`
	CPU   *float64 `json:"cpu_time"`
	Alg   float64  `json:"alg_bw"`
	Bus   float64  `json:"bus_bw"`
	Wrong *int64   `json:"nwrong"`
}

// ParseNCCLTestsJSON reads the -J file of nccl-tests.
func ParseNCCLTestsJSON(raw []byte, source string) (NCCLRun, error) {
	var doc ncclJSON
	if err := json.Unmarshal(raw, &doc); err != nil {
		return NCCLRun{}, fmt.Errorf("nccl-tests JSON: %w", err)
	}
	run := NCCLRun{Engine: "nccl-tests", Tool: doc.Version, Wrong: doc.Bounds.Count, Ranks: len(doc.Devices), Source: source}
	if doc.NCCL != nil {
		v := strings.Trim(fmt.Sprint(doc.NCCL), `"`)
		run.Library = firstNonEmpty(libraryVersion(strings.TrimSuffix(v, ".0")), v)
	}
	for _, d := range doc.Devices {
		run.Devices = append(run.Devices, rankDevice(d.Hex, d.Info))
	}
	for _, r := range doc.Results {
		row := NCCLRow{Bytes: r.Size, Wrong: -1}
		for _, p := range []ncclPlace{r.Out, r.In} {
			if p.Bus >= row.BusBW {
				row.AlgBW, row.BusBW = p.Alg, p.Bus
				if t := p.Time; t != nil {
					row.TimeUS = *t
				} else if p.CPU != nil {
					row.TimeUS = *p.CPU
				}
			}
			if p.Wrong != nil {
				row.Wrong = max(row.Wrong, *p.Wrong)
			}
		}
		run.Rows = append(run.Rows, row)
		run.Wrong = max(run.Wrong, row.Wrong)
	}
	if len(doc.Errors) > 0 {
		run.Error = fmt.Sprint(doc.Errors[0])
	}
	return run, nil
}
