//go:build linux

package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"preflight/internal/probe/wire"
)

// Limits of what is read and told of a log.
const (
	logBytes    = 4 << 20
	logEdges    = 256
	logWarnings = 20
	warnBytes   = 400
)

var (
	logEdge      = regexp.MustCompile(`Channel \d+(?:/\d+)? : (\d+)\[[0-9a-f]+\] -> (\d+)\[[0-9a-f]+\](?: \[(?:send|receive)\])? via (\S.*)`)
	logVersion   = regexp.MustCompile(`NCCL version (\d+\.\d+\.\d+)`)
	logNetwork   = regexp.MustCompile(`Using network (\S+)`)
	logInterface = regexp.MustCompile(`Bootstrap ?: Using (?:\[\d+\])?(\S+)`)
	logWarn      = regexp.MustCompile(`NCCL WARN (.*)`)
	logPointer   = regexp.MustCompile(` comm 0x[0-9a-f]+.*| nRanks \d+.*`)
)

// parseLog reads NCCL's log of level INFO, as 2.8 to 2.30 write it.
func parseLog(text string) wire.NCCLLog {
	var l wire.NCCLLog
	edges := map[wire.Edge]int{}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if m := logEdge.FindStringSubmatch(line); m != nil {
			from, _ := strconv.Atoi(m[1])
			to, _ := strconv.Atoi(m[2])
			via := logPointer.ReplaceAllString(m[3], "")
			edges[wire.Edge{From: from, To: to, Kind: edgeKind(via), Via: strings.TrimSpace(via)}]++
		}
		l.Version = matched(l.Version, logVersion, line)
		l.Network = matched(l.Network, logNetwork, line)
		l.Interface = matched(l.Interface, logInterface, line)
		switch {
		case strings.Contains(line, "Init START"):
			l.Started++
		case strings.Contains(line, "Init COMPLETE"):
			l.Complete++
		case strings.Contains(line, "P2P is disabled between connected GPUs"):
			l.Refused = true
		}
		if m := logWarn.FindStringSubmatch(line); m != nil && len(l.Warnings) < logWarnings {
			l.Warnings = append(l.Warnings, strings.ToValidUTF8(m[1][:min(len(m[1]), warnBytes)], "?"))
		}
	}
	l.Edges = sortedEdges(edges)
	l.Transport = slowest(l.Edges)
	return l
}

// matched keeps what was found first.
func matched(had string, r *regexp.Regexp, line string) string {
	if m := r.FindStringSubmatch(line); had == "" && m != nil {
		return m[1]
	}
	return had
}

// edgeKind reduces "P2P/IPC/read", "SHM/direct/direct", "direct shared memory", "NET/Socket/0" to its class.
func edgeKind(via string) string {
	if strings.HasPrefix(via, "direct shared memory") {
		return "SHM"
	}
	kind, _, _ := strings.Cut(via, "/")
	return kind
}

func sortedEdges(edges map[wire.Edge]int) []wire.Edge {
	var out []wire.Edge
	for e, n := range edges {
		e.Channels = n
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b wire.Edge) int {
		if a.From != b.From {
			return a.From - b.From
		}
		if a.To != b.To {
			return a.To - b.To
		}
		return strings.Compare(a.Via, b.Via)
	})
	return out[:min(len(out), logEdges)]
}

// slowest is the kind of the ring's weakest edge.
func slowest(edges []wire.Edge) string {
	for _, kind := range []string{"NET", "SHM", "P2P"} {
		if slices.ContainsFunc(edges, func(e wire.Edge) bool { return e.Kind == kind }) {
			return kind
		}
	}
	return ""
}

// tellLogs tells what the logs of all workers say, also of those that hung or crashed.
func (s *supervisor) tellLogs() {
	var text strings.Builder
	for _, w := range s.workers {
		text.WriteString(readLog(w.log))
		_ = w.log.Close()
		_ = w.stdin.Close()
	}
	if text.Len() == 0 {
		return
	}
	l := parseLog(text.String())
	s.say(wire.Line{Phase: wire.PhaseNCCLLog, State: wire.StateResult, Log: &l})
}

// readLog reads a log from its start, whoever wrote it and wherever they are in it.
func readLog(f *os.File) string {
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, logBytes))
	if err != nil || len(raw) == 0 {
		return ""
	}
	return string(raw) + "\n"
}
