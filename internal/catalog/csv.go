package catalog

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// table reads an embedded CSV into one map a row, keyed by column name.
func table(name string, data []byte) ([]map[string]string, error) {
	r := csv.NewReader(bytes.NewReader(data))
	records, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("catalogue %s: %w", name, err)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("catalogue %s: no header", name)
	}
	rows := make([]map[string]string, 0, len(records)-1)
	for _, rec := range records[1:] {
		row := make(map[string]string, len(rec))
		for i, v := range rec {
			row[records[0][i]] = strings.TrimSpace(v)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// number reads a cell; an empty or unreadable cell is 0, which every user of the catalogue takes as "not known".
func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return f
}

func integer(s string) int { return int(number(s)) }

// fields is the set of a row's figures that were seen in a public source.
func fields(s string) map[string]bool {
	set := map[string]bool{}
	for _, f := range strings.Fields(s) {
		set[f] = true
	}
	return set
}
