package facts

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	fabricError = regexp.MustCompile(`\[ERROR\].*NVSwitch (non-fatal|fatal) error (\d+)`)
	fabricBDF   = regexp.MustCompile(`(?:pci bus id|PCI bus id|bus id):?\s*([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)`)
)

// readFabric takes errors of NVSwitches from the log of NVIDIA's Fabric Manager; they carry the numbers of the
// driver's SXid lines.
func readFabric(b *builder) {
	for _, d := range b.dumps(dumpFabric) {
		for n, line := range d.lines() {
			m := fabricError.FindStringSubmatch(line)
			if m == nil || len(b.host.Log.Events) >= logLimit {
				continue
			}
			ev := LogEvent{Kind: "sxid", Text: strings.TrimSpace(line), Source: d.src(strconv.Itoa(n + 1))}
			ev.Code, _ = strconv.Atoi(m[2])
			if at := fabricBDF.FindStringSubmatch(line); at != nil {
				ev.BDF = smiBDF(at[1])
			}
			b.host.Log.Events = append(b.host.Log.Events, ev)
		}
	}
}
