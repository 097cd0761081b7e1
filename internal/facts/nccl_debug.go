package facts

import (
	"regexp"
	"strings"
)

// NCCLDebug is what NCCL's own log says of a run.
type NCCLDebug struct {
	Transport string // the slowest kind of edge: NET, SHM, P2P; "" when no edge was logged
	Edges     map[string]int
	Started   int    // ranks that began to initialise
	Complete  int    // ranks whose Init COMPLETE was logged
	FirstWarn string // the earliest WARN
	Library   string
}

var (
	edgeLine = regexp.MustCompile(`Channel (\d+)(?:/\d+)? : (\d+)\[[0-9a-f]+\] -> (\d+)\[[0-9a-f]+\](?: \[(?:send|receive)\])? via (\S+(?: shared memory)?)`)
	initLine = regexp.MustCompile(`Init (START|COMPLETE)`)
	warnLine = regexp.MustCompile(`NCCL WARN (.*)`)
)

// ParseNCCLDebug reads lines of NCCL_DEBUG=INFO, versions 2.8 to 2.30.
func ParseNCCLDebug(text string) NCCLDebug {
	d := NCCLDebug{Edges: map[string]int{}}
	for _, line := range strings.Split(text, "\n") {
		if m := edgeLine.FindStringSubmatch(line); m != nil {
			d.Edges[edgeKind(m[4])]++
		}
		switch m := initLine.FindStringSubmatch(line); {
		case m == nil:
		case m[1] == "START":
			d.Started++
		default:
			d.Complete++
		}
		if m := warnLine.FindStringSubmatch(line); m != nil && d.FirstWarn == "" {
			d.FirstWarn = strings.TrimSpace(m[1])
		}
		if m := libraryLine.FindStringSubmatch(line); m != nil && d.Library == "" {
			d.Library = m[1]
		}
	}
	for _, kind := range []string{"NET", "SHM", "P2P"} {
		if d.Edges[kind] > 0 {
			d.Transport = kind
			break
		}
	}
	return d
}

// edgeKind reduces "P2P/direct", "SHM/direct/direct", "NET/Socket/0", "direct shared memory" to their class.
func edgeKind(via string) string {
	switch {
	case strings.HasPrefix(via, "P2P"):
		return "P2P"
	case strings.HasPrefix(via, "SHM"), strings.HasPrefix(via, "direct"):
		return "SHM"
	case strings.HasPrefix(via, "NET"):
		return "NET"
	}
	return strings.SplitN(via, "/", 2)[0]
}
