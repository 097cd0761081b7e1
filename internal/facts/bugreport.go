package facts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// nvidia-bug-report.sh joins files and outputs of commands into one log. A line of underscores ends a section; the
// first line of the next one names it: "*** /proc/cpuinfo", "/usr/bin/nvidia-smi --query", "/sbin/lspci -nn".

// Marks of a bug report.
const (
	bugReportStart = "Start of NVIDIA bug report log file"
	bugReportEnd   = "End of NVIDIA bug report log file"
)

// Bounds of one report. Of a section that is longer the beginning is kept.
const (
	bugReportLimit   = 512 << 20 // bytes, unpacked
	bugSectionLimit  = DumpLimit
	bugSectionsLimit = 20_000
)

var (
	bugRuler = regexp.MustCompile(`^_{20,}$`)
	bugFile  = regexp.MustCompile(`^\*\*\* (/\S+)$`)
	bugPlain = regexp.MustCompile(`^(/(?:proc|etc|var)/\S+)$`)                           // scripts of before 2010 put no stars
	bugPart  = regexp.MustCompile(`^/\S*/(?:lspci|nvidia-smi|dmidecode|numactl)(?: |$)`) // opens a part of a section
	bugRun   = regexp.MustCompile(`^(?:sudo )?(?:/\S*/)?(lspci|nvidia-smi|dmidecode|dmesg|journalctl|lscpu|numactl)\b(.*)$`)
	bugPath  = regexp.MustCompile(`/\./|//+`)
)

// bugFiles are the host files of a report that have readers; a trailing * takes every file below.
var bugFiles = map[string]bool{
	"proc/cpuinfo": true, "proc/meminfo": true, "proc/cmdline": true, "proc/iomem": true, "proc/modules": true, "proc/version": true,
	"proc/driver/nvidia/version": true, "proc/driver/nvidia/params": true, "etc/os-release": true,
}

// LooksLikeBugReport says whether a text begins as a bug report does.
func LooksLikeBugReport(first []byte) bool { return strings.Contains(string(first), bugReportStart) }

// AddBugReport reads a bug report, unpacked, as a stream. A report that was cut gives what it has; the cut is noted
// in the snapshot's manifest.
func (d *Dumps) AddBugReport(name string, r io.Reader) error {
	p := &bugReader{dumps: d, name: name}
	br := bufio.NewReaderSize(&io.LimitedReader{R: r, N: bugReportLimit}, 64<<10)
	var err error
	for {
		var part []byte
		part, err = br.ReadSlice('\n')
		if len(part) > 0 {
			p.line(strings.TrimRight(string(part), "\r\n"))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if !p.ended {
		p.half()
	}
	p.end()
	p.logs.place(d, name)
	switch {
	case !p.started:
		return fmt.Errorf("%w: %s lacks the line %q", ErrNotADump, name, bugReportStart)
	case p.ended:
	case errors.Is(err, io.EOF):
		d.snap.Manifest.Cut = fmt.Sprintf("%s ends in the middle, in its section %q", name, clipName(p.last))
	default:
		d.snap.Manifest.Cut = fmt.Sprintf("%s is damaged in its section %q: %v", name, clipName(p.last), err)
	}
	return nil
}

type bugReader struct {
	dumps          *Dumps
	name           string
	started, ended bool
	last           string // heading of the section last begun
	heading        string
	lines          []string
	size, sections int
	cut            bool
	logs           bugLogs
}

func (p *bugReader) line(line string) {
	switch {
	case strings.HasPrefix(line, bugReportStart):
		p.started = true
	case strings.HasPrefix(line, bugReportEnd):
		p.ended = true
	case strings.HasPrefix(line, "_") && bugRuler.MatchString(line):
		p.end()
		return
	case p.heading == "" && strings.TrimSpace(line) == "":
		return
	case p.heading == "" || strings.HasPrefix(line, "*** /") && bugFile.MatchString(line) || strings.HasPrefix(line, "/") && bugPart.MatchString(line):
		if p.heading != "" { // a file may follow a file without a ruler, and so do the commands of nvidia-smi
			p.end()
		}
		p.heading, p.last = line, line
		return
	}
	if date, ok := strings.CutPrefix(line, "Date: "); ok && p.sections <= 1 {
		p.date(date)
	}
	if p.size += len(line) + 1; p.size > bugSectionLimit {
		p.cut = true
		return
	}
	p.lines = append(p.lines, line)
}

// half takes from the section in which a report was cut what would pass for a count of the whole: a list of processors,
// of memory modules, or of the bus, of which only the beginning is there.
func (p *bugReader) half() {
	from := func(i int) {
		if i >= 0 {
			p.lines = p.lines[:i]
		}
	}
	switch {
	case strings.Contains(p.heading, "/proc/cpuinfo"), strings.Contains(p.heading, "/proc/iomem"), strings.Contains(p.heading, "numactl"):
		p.heading = ""
	case strings.Contains(p.heading, "dmidecode"):
		from(slices.IndexFunc(p.lines, func(l string) bool { return dmiDetail[strings.TrimSpace(l)] }))
	case strings.Contains(p.heading, "lspci"):
		if n := len(p.lines); n > 0 {
			p.lines = p.lines[:n-1] // half a line
		}
		i := slices.IndexFunc(p.lines, lspciHead.MatchString)
		if next := slices.IndexFunc(p.lines[i+1:], lspciHead.MatchString); next >= 0 {
			p.lines = p.lines[i+1+next:]
		}
	}
}

// bugDates are the forms of date(1) that are met: the clock of 24 or 12 hours, the zone as letters or as an offset.
var bugDates = []string{
	time.UnixDate, "Mon Jan _2 15:04:05 -07 2006", "Mon Jan _2 03:04:05 PM MST 2006", "Mon Jan _2 03:04:05 PM -07 2006",
	"Mon _2 Jan 15:04:05 MST 2006", "Mon _2 Jan 2006 03:04:05 PM MST", "Mon _2 Jan 2006 03:04:05 PM -07",
}

func (p *bugReader) date(text string) {
	for _, form := range bugDates {
		if at, err := time.Parse(form, text); err == nil {
			p.dumps.Seen(at)
			return
		}
	}
}

// end gives the section that was open to its reader.
func (p *bugReader) end() {
	heading, lines := strings.TrimSpace(p.heading), p.lines
	p.heading, p.lines, p.size = "", nil, 0
	if heading == "" || p.sections >= bugSectionsLimit {
		return
	}
	p.sections++
	if p.cut {
		p.dumps.Skip(p.name, fmt.Sprintf("the section %q from %d MiB on", clipName(heading), bugSectionLimit>>20))
		p.cut = false
	}
	for len(lines) > 0 && strings.HasPrefix(lines[0], "*** ls: ") {
		lines = lines[1:]
	}
	if p.logs.take(heading, lines) {
		return
	}
	m := bugFile.FindStringSubmatch(heading)
	if m == nil {
		m = bugPlain.FindStringSubmatch(heading)
	}
	if m != nil {
		p.file(strings.TrimPrefix(bugPath.ReplaceAllString(m[1], "/"), "/"), lines)
		return
	}
	if m = bugRun.FindStringSubmatch(heading); m == nil {
		p.guess(append([]string{heading}, lines...))
		return
	}
	if m[1] == "nvidia-smi" && strings.Contains(m[2], "--unit") {
		return
	}
	kind := kindByCommand(m[1] + m[2])
	if kind == dumpLspciTree && !strings.Contains(strings.Join(lines, "\n"), "]-") {
		kind = dumpLspci
	}
	for _, s := range splitDumps(cleanText([]byte(strings.Join(lines, "\n"))), kind) {
		s.command = firstNonEmpty(s.command, heading)
		p.dumps.place(p.name+"#"+bugTitle(m[1], m[2]), s)
	}
}

// bugTitle names a section in sources: "lspci -nn".
func bugTitle(tool, options string) string {
	return strings.TrimSpace(tool + " " + strings.ReplaceAll(strings.TrimSpace(options), `"`, ""))
}

// file takes a section that is a copy of a file.
func (p *bugReader) file(at string, lines []string) {
	card := strings.HasPrefix(at, "proc/driver/nvidia/gpus/") && strings.HasSuffix(at, "/information")
	if bugFiles[at] || card {
		if _, taken := p.dumps.snap.Files[at]; !taken && !missing(lines) {
			p.dumps.snap.Files[at] = []byte(strings.Join(lines, "\n") + "\n")
		}
		return
	}
	switch t, ok := kindByName(at[strings.LastIndexByte(at, '/')+1:]); {
	case !strings.HasPrefix(at, "var/log/"):
	case ok && t.kind == dumpLog:
		p.logs.add(logFiles, lines)
	case strings.Contains(at, "fabric"):
		p.guess(lines)
	}
}

func missing(lines []string) bool {
	return blankLines(lines) || strings.Contains(lines[0], "does not exist") || strings.Contains(lines[0], "not readable")
}

// guess takes sections by what their lines are: tables of tools. A kernel's log is not guessed: the X server's, those of
// crashed programs and those of other boots look the same.
func (p *bugReader) guess(lines []string) {
	for _, s := range splitDumps(cleanText([]byte(strings.Join(lines, "\n"))), "") {
		if t := kindOf(s.kind); t.unread == "" && t.kind != dumpLog {
			p.dumps.place(p.name, s)
		}
	}
}
