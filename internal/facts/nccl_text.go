package facts

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

var (
	ncclNoise   = regexp.MustCompile(`[A-Za-z][\w.-]*:\d+:\d+ \[\d+\] NCCL (?:INFO|WARN|TRACE)[^\n]*|^\[\d+,\d+\]<(?:stdout|stderr)>:`)
	rankLine    = regexp.MustCompile(`^#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+)\s+device\s+\d+ \[([0-9a-fA-Fx:.]+)\] (.*)$`)
	toolLine    = regexp.MustCompile(`^# nccl-tests version (\S+).*?(?:nccl-library=(\d+))?\s*$`)
	libraryLine = regexp.MustCompile(`NCCL version (\d+\.\d+\.\d+)`)
	outOfBounds = regexp.MustCompile(`^#\s*Out of bounds values\s*:\s*(\d+)\s+(OK|FAILED)`)
	testError   = regexp.MustCompile(`(Test (?:NCCL|CUDA) failure .*|Test failure .*|Test timeout .*|Invalid number of GPUs.*|Incompatible NCCL versions.*|error while loading shared libraries.*|NCCL WARN .*)`)
)

// ncclLineLimit bounds a line of probe output; a longer one is not a row.
const ncclLineLimit = 64 << 10

// ParseNCCLTests reads the text that all_reduce_perf prints, every generation of it: columns with `error` (before
// 2022-09) or `#wrong`, with or without `root`, ranks with or without group, rows behind mpirun tags, NCCL log lines
// between rows. Rows are read from the right, since the columns on the left came and went.
func ParseNCCLTests(text, source string) NCCLRun {
	run := NCCLRun{Engine: "nccl-tests", Wrong: -1, Source: source}
	header, torn, broke := false, tornRow{}, ""
	for line := range strings.SplitSeq(ansi.ReplaceAllString(text, ""), "\n") {
		if len(line) > ncclLineLimit {
			continue
		}
		if m := libraryLine.FindStringSubmatch(line); m != nil && run.Library == "" {
			run.Library = m[1]
		}
		if m := testError.FindStringSubmatch(line); m != nil {
			run.Error = firstNonEmpty(run.Error, strings.TrimSpace(m[1]))
			if strings.HasPrefix(m[1], "Test ") {
				broke = firstNonEmpty(broke, strings.TrimSpace(m[1]))
			}
		}
		line = strings.TrimRight(ncclNoise.ReplaceAllString(line, ""), " \r")
		if m := rankLine.FindStringSubmatch(line); m != nil {
			run.Ranks++
			run.Devices = append(run.Devices, rankDevice(m[3], m[4]))
			continue
		}
		if m := toolLine.FindStringSubmatch(line); m != nil {
			run.Tool = m[1]
			run.Library = firstNonEmpty(run.Library, libraryVersion(m[2]))
		}
		if m := outOfBounds.FindStringSubmatch(line); m != nil {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			run.Wrong = max(run.Wrong, n)
		}
		header = header || strings.Contains(line, "algbw")
		row, ok := parseRow(line)
		if !ok {
			row, ok = torn.add(line)
		}
		if ok {
			torn = tornRow{}
			run.Rows = append(run.Rows, row)
			run.Wrong = max(run.Wrong, row.Wrong)
		}
	}
	if len(run.Rows) > 0 {
		run.Error = broke // beside results, a warning of NCCL stopped nothing; a failure of the test did
	}
	run.Hung = (header || run.Ranks > 0) && len(run.Rows) == 0 && run.Error == ""
	run.SingleRanks = independentRanks(run, text)
	if edges := ParseNCCLDebug(text); edges.Transport != "" {
		run.Transport = edges.Transport
	}
	return run
}

// tornRow collects a row that log lines of NCCL tore apart: its left half ends where a log line was glued to it, the
// figures follow many lines later.
type tornRow struct{ text string }

// tornLimit is more than a whole row has, bytes.
const tornLimit = 512

var rowStart = regexp.MustCompile(`^\s*\d+\s+\d+\s+[a-z]\w+\s+[a-z]\w+(\s+-?\d+)?(\s|$)`)

// add joins a fragment, and returns the row once it is whole.
func (t *tornRow) add(line string) (NCCLRow, bool) {
	switch {
	case rowStart.MatchString(line):
		t.text = line
	case len(t.text) > tornLimit:
		t.text = ""
	case t.text != "" && onlyFigures(line):
		t.text += " " + line
	}
	return parseRow(t.text)
}

func onlyFigures(line string) bool {
	f := strings.Fields(line)
	for _, w := range f {
		if _, err := strconv.ParseFloat(w, 64); err != nil && w != "N/A" {
			return false
		}
	}
	return len(f) > 0 && len(f) <= 8
}

// parseRow reads one result line: size, count, type, redop, [root], then twice time, algbw, busbw, wrong.
func parseRow(line string) (NCCLRow, bool) {
	f := strings.Fields(line)
	if len(f) < 11 || len(f) > 13 {
		return NCCLRow{}, false
	}
	size, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || size < 0 {
		return NCCLRow{}, false
	}
	row := NCCLRow{Bytes: size, Wrong: -1}
	for _, half := range [][]string{f[len(f)-8 : len(f)-4], f[len(f)-4:]} {
		time, e1 := strconv.ParseFloat(half[0], 64)
		alg, e2 := strconv.ParseFloat(half[1], 64)
		bus, e3 := strconv.ParseFloat(half[2], 64)
		if e1 != nil || e2 != nil || e3 != nil {
			return NCCLRow{}, false
		}
		finite := !math.IsInf(time+alg+bus, 0) && !math.IsNaN(time+alg+bus) // a clock that stood still prints inf
		if finite && bus >= row.BusBW {
			row.TimeUS, row.AlgBW, row.BusBW = time, alg, bus
		}
		row.Wrong = max(row.Wrong, wrongCount(half[3]))
	}
	return row, true
}

// wrongCount reads the last column of a half: an integer count; "N/A" is not checked; an old float error of at most
// 1e-3 is rounding, more is a wrong value.
func wrongCount(s string) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		if f > 1e-3 {
			return 1
		}
		return 0
	}
	return -1
}

// rankDevice is the BDF when the line carries one ("0000:01:00", or "0x41" for bus 41), else the name.
func rankDevice(addr, name string) string {
	addr = strings.ToLower(addr)
	switch {
	case strings.Count(addr, ":") == 2:
		return strings.TrimSuffix(addr, ".0") + ".0"
	case strings.HasPrefix(addr, "0x") && addr != "0x00":
		return "0000:" + strings.TrimPrefix(addr, "0x") + ":00.0"
	}
	return name
}

// libraryVersion turns ncclGetVersion's integer into dotted form: 22203 is 2.22.3, and up to 2.8 2804 is 2.8.4.
func libraryVersion(s string) string {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil || n <= 0:
		return ""
	case n < 10000:
		return strconv.Itoa(n/1000) + "." + strconv.Itoa(n/100%10) + "." + strconv.Itoa(n%100)
	}
	return strconv.Itoa(n/10000) + "." + strconv.Itoa(n/100%100) + "." + strconv.Itoa(n%100)
}

// independentRanks: several jobs of one rank each, what a build without MPI does under mpirun. Their bus bandwidth
// is 0 by definition.
func independentRanks(run NCCLRun, text string) bool {
	if strings.Count(text, "# Using devices") > 1 && run.Ranks == strings.Count(text, "# Using devices") {
		return true
	}
	if run.Ranks != 1 || len(run.Rows) == 0 {
		return false
	}
	for _, r := range run.Rows {
		if r.BusBW > 0 {
			return false
		}
	}
	return true
}

// Plateau is the bus bandwidth (GB/s) of the largest size: what the ring can do once latency no longer matters.
// The printed average is a mean over all sizes and means nothing.
func (r NCCLRun) Plateau() (row NCCLRow, ok bool) {
	for _, x := range r.Rows {
		if x.Bytes >= row.Bytes {
			row, ok = x, true
		}
	}
	return row, ok
}
