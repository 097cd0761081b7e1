package facts

import (
	"regexp"
	"slices"
	"strings"
)

// segment is a part of a text that is one dump.
type segment struct {
	kind    dumpKind
	command string // the echoed command line before it
	lines   []string
}

func (s segment) text() string { return strings.Join(s.lines, "\n") + "\n" }

// whole are kinds whose text may hold anything: nothing in it begins a dump of another kind, once the name says so.
var whole = map[dumpKind]bool{dumpLog: true, dumpNCCLTests: true, dumpNCCLDebug: true, dumpFabric: true, dumpSMIXML: true}

// inside are kinds whose lines may look like heads of others: those do not end them.
var inside = map[dumpKind]map[dumpKind]bool{
	dumpNCCLTests:  {dumpNCCLDebug: true, dumpLog: true},
	dumpNCCLDebug:  {dumpLog: true},
	dumpSMIText:    {dumpSMIText: true},
	dumpLspci:      {dumpBareACS: true},
	dumpCUDASample: {dumpSMITable: true},
	dumpBandwidth:  {dumpCUDASample: true},
	dumpLog:        {dumpNVRM: true},
}

// smiLike is nvidia-smi's XML, and that of its look-alikes: what those show is no fact, but has to be told.
var smiLike = regexp.MustCompile(`<[a-z]+_smi_log|<[a-z]*smi_log|<attached_gpus>`)

var matrixP2P = regexp.MustCompile(`(?m)^\s*GPU\d+\s.*\b(?:OK|CNS|GNS|TNS|NS|DR)\b`)

// splitDumps cuts a cleaned text where a dump of another kind begins: at lines that only one kind begins with, and at
// echoed commands. expected is the kind that the file's name promises, "" for none; it names what no line tells.
func splitDumps(text string, expected dumpKind) []segment {
	lines := strings.Split(text, "\n")
	if whole[expected] && !contradicts(lines, expected) {
		return []segment{{kind: expected, lines: lines}}
	}
	s := &splitter{at: segment{kind: expected}}
	for _, line := range lines {
		s.line(line)
	}
	s.end()
	if s.env != nil {
		s.out = append(s.out, *s.env)
	}
	var kept []segment
	for _, seg := range s.out {
		if seg.kind == dumpTopo && matrixP2P.MatchString(seg.text()) {
			seg.kind = dumpP2P
		}
		if seg.kind == dumpSMIXML && !smiLike.MatchString(seg.text()) {
			continue // another program's XML
		}
		if seg.kind != "" && strings.TrimSpace(seg.text()) != "" {
			kept = append(kept, seg)
		}
	}
	return kept
}

// contradicts says whether the first line that tells anything tells of another kind than the name.
func contradicts(lines []string, expected dumpKind) bool {
	for _, l := range lines[:min(len(lines), 40)] {
		if k := kindByLine(l); k != "" {
			return k != expected && !(expected == dumpNCCLTests && k == dumpNCCLDebug) && !(expected == dumpNCCLDebug && k == dumpNCCLTests) && !inside[expected][k]
		}
	}
	return false
}

type splitter struct {
	out []segment
	at  segment
	env *segment // collect_env goes on behind the copies of other tools' output in it
	xml bool     // within an XML document
}

func (s *splitter) line(line string) {
	if s.env != nil {
		s.env.lines = append(s.env.lines, line)
	}
	if s.xml {
		s.at.lines = append(s.at.lines, line)
		s.xml = !strings.Contains(line, "</nvidia_smi_log>")
		return
	}
	if s.at.kind == dumpLog && (strings.HasPrefix(line, "[") || strings.Contains(line, " kernel: ")) {
		s.at.lines = append(s.at.lines, line)
		return
	}
	if m := prompt.FindStringSubmatch(line); m != nil {
		if k := kindByCommand(m[1]); k != "" {
			s.end()
			s.at = segment{kind: k, command: m[1]}
			return
		}
	}
	if len(line) <= lineLimit {
		s.head(kindByLine(line), line)
	}
	s.at.lines = append(s.at.lines, line)
}

// head begins a new part where the line says so.
func (s *splitter) head(k dumpKind, line string) {
	before := s.at
	switch {
	case k == dumpSMIText && s.at.kind == k && strings.HasPrefix(line, "=") && !blankLines(s.at.lines): // another log
		s.end()
		s.at = segment{kind: k}
	case k == "" || k == s.at.kind || inside[s.at.kind][k]:
	case k == dumpTopo && s.at.kind == dumpP2P:
	case k == dumpNCCLTests && s.at.kind == dumpNCCLDebug: // NCCL's log began before the table did
		s.at.kind = k
	case k == dumpSMIText && s.at.kind != "" && !strings.HasPrefix(line, "=") && s.at.kind != dumpSMITable:
		// "GPU 00000000:01:00.0" alone begins a paste, and does not end another dump.
	case s.at.kind != "" && len(s.out) == 0 && blankLines(s.at.lines): // the name was wrong
		s.at.kind = k
	default:
		s.end()
		s.at = segment{kind: k}
	}
	if k == dumpCollectEnv && s.env == nil {
		s.env = &segment{kind: k}
		if before.kind == "" { // vLLM's copy tells of the system first
			s.env.lines = before.lines
		}
		s.env.lines = append(slices.Clip(s.env.lines), line)
	}
	s.xml = k == dumpSMIXML && s.at.kind == dumpSMIXML && !strings.Contains(line, "</nvidia_smi_log>")
}

func (s *splitter) end() {
	if s.at.kind != dumpCollectEnv || s.env == nil {
		s.out = append(s.out, s.at)
	}
	s.at = segment{}
}

func blankLines(lines []string) bool {
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			return false
		}
	}
	return true
}
