package probe

import (
	"bytes"
	"crypto/rand"
	_ "embed" // the shared part of scripts
	"encoding/hex"
	"encoding/json"
	"strings"

	"preflight/internal/facts"
)

//go:embed processes.sh
var processes string

// outputLimit bounds what one probe may send, bytes.
const outputLimit = 4 << 20

// hops are the addresses whose links are sampled: every card, and every bridge above it.
func hops(h *facts.Host) []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range h.Cards {
		for _, bdf := range append(append([]string{}, c.Chain...), c.BDF) {
			if !seen[bdf] {
				seen[bdf] = true
				out = append(out, bdf)
			}
		}
	}
	return out
}

func nvlink(h *facts.Host) bool {
	for _, p := range h.Topo {
		if strings.HasPrefix(p.Level, "NV") {
			return true
		}
	}
	return false
}

// cutWords is why a run that never came to its end says nothing: host or network may have gone, for any reason.
const cutWords = "the connection ended during the run"

func newNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails (Go 1.24)
	return "preflight-" + hex.EncodeToString(b[:])
}

// sections splits the stream at lines that begin with the nonce. The words after a section's name open its text.
func sections(raw []byte, nonce string) map[string]string {
	out := map[string]string{}
	name := ""
	for _, line := range strings.SplitAfter(string(raw), "\n") {
		if rest, ok := strings.CutPrefix(line, nonce+" "); ok {
			var value string
			name, value, _ = strings.Cut(strings.TrimRight(rest, "\r\n"), " ")
			out[name] = value
			if value != "" {
				out[name] += "\n"
			}
			continue
		}
		if name != "" {
			out[name] += line
		}
	}
	return out
}

func firstNonEmpty(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// saveRuns puts all-reduces where facts.FromSnapshot finds them.
func saveRuns(s *facts.Snapshot, runs ...facts.NCCLRun) {
	s.Files[facts.ProbeNCCLPath], _ = json.MarshalIndent(runs, "", "  ")
}

// Forget takes back what a probe has put into a snapshot.
func Forget(s *facts.Snapshot) {
	for _, path := range []string{facts.ProbeNCCLPath, facts.ProbeLinksPath, facts.ProbeNativePath} {
		delete(s.Files, path)
	}
}

// saveLinks does the same with links seen under load.
func saveLinks(s *facts.Snapshot, links []facts.LinkSample) {
	if len(links) > 0 {
		s.Files[facts.ProbeLinksPath], _ = json.MarshalIndent(links, "", "  ")
	}
}

// capped keeps the first bytes and drops the rest, so that a host cannot fill the memory here.
type capped struct {
	bytes.Buffer
	limit int
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.limit - c.Len(); room > 0 {
		c.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
