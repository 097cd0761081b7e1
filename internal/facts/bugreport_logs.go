package facts

import (
	"regexp"
	"slices"
	"strings"
)

// A bug report holds the kernel's messages several times: all that dmesg still has, the driver's lines of the journal
// for this boot and the two before it, and the driver's lines of files in /var/log, which go back for weeks. It also
// holds the journals of X servers of three boots, which are no kernel's messages.

// bugLog ranks the logs of a report, best first.
type bugLog int

const (
	logDmesg bugLog = iota
	logJournal
	logFiles // may hold other boots; read only where nothing better is there
	logRanks
)

var (
	bugJournal = regexp.MustCompile(`^(?:\S*/)?journalctl\b(.*)$`)
	bugDmesg   = regexp.MustCompile(`^(?:\S*/)?dmesg(?: -\S+)*:?$`)
	bugScan    = regexp.MustCompile(`^Scanning kernel log files`)
	bugScanned = regexp.MustCompile(`^\s*(/\S+|journalctl .*):$`)
	otherBoot  = regexp.MustCompile(`(?: -b| --boot)[ =]?-[1-9]`)
	someUnit   = regexp.MustCompile(` _[A-Z_]+=| -u\b| --unit| -t\b`)
)

// bugLogs collects them until all are seen.
type bugLogs struct {
	text    [logRanks][]string
	earlier []string // journals of earlier boots
}

// take takes a section that is a log by its heading.
func (l *bugLogs) take(heading string, lines []string) bool {
	switch m := bugJournal.FindStringSubmatch(heading); {
	case m != nil:
		l.journal(m[1], lines)
	case bugDmesg.MatchString(heading):
		l.add(logDmesg, lines)
	case bugScan.MatchString(heading):
		l.scan(lines)
	default:
		return false
	}
	return true
}

// journal takes what one journalctl printed, unless it is of one program or of another boot.
func (l *bugLogs) journal(options string, lines []string) {
	switch {
	case someUnit.MatchString(options):
	case otherBoot.MatchString(options):
		if slices.ContainsFunc(lines, kernelLine) {
			l.earlier = append(l.earlier, lines...)
		}
	default:
		l.add(logJournal, lines)
	}
}

// scan takes apart the section that greps several logs, each under its name.
func (l *bugLogs) scan(lines []string) {
	name, from := "", 0
	give := func(to int) {
		if m := bugJournal.FindStringSubmatch(name); m != nil {
			l.journal(m[1], lines[from:to])
		} else if name != "" {
			l.add(logFiles, lines[from:to])
		}
	}
	for i, line := range lines {
		if m := bugScanned.FindStringSubmatch(line); m != nil {
			give(i)
			name, from = m[1], i+1
		}
	}
	give(len(lines))
}

// add keeps the lines of a log, if any is the kernel's.
func (l *bugLogs) add(rank bugLog, lines []string) {
	if slices.ContainsFunc(lines, kernelLine) {
		l.text[rank] = append(l.text[rank], lines...)
	}
}

func kernelLine(line string) bool { return len(line) <= lineLimit && kindByLine(line) == dumpLog }

// place gives the best logs to their reader.
func (l *bugLogs) place(d *Dumps, name string) {
	if len(l.earlier) > 0 {
		l.text[logJournal] = append(append(l.earlier, "-- Reboot --"), l.text[logJournal]...)
	}
	better := false
	for rank, lines := range l.text {
		if len(lines) == 0 || bugLog(rank) == logFiles && better {
			continue
		}
		better = true
		d.place(name, segment{kind: dumpLog, lines: strings.Split(cleanText([]byte(strings.Join(lines, "\n"))), "\n")})
	}
}
