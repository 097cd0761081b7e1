package facts

import (
	"regexp"
	"strconv"
	"strings"
)

// TopoNode is the NUMA node of a card as nvidia-smi topo -m prints it beside its matrix.
type TopoNode struct {
	Card   string `json:"card"` // by BDF when known, else "GPU0"
	Node   int    `json:"node"`
	Source string `json:"source"`
}

var affinityList = regexp.MustCompile(`^[0-9]+[0-9,-]*$`)

// readTopoNodes reads the column "NUMA Affinity". Cells may be empty or N/A, and after the cards come columns of
// network cards, so a row counts only when a list of processors and a number stand right behind the matrix.
func readTopoNodes(b *builder) {
	raw, ok := b.read("cmd/topo-m.txt")
	if !ok {
		return
	}
	columns := 0
	for _, line := range strings.Split(ansi.ReplaceAllString(string(raw), ""), "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if gpuLabel.MatchString(f[0]) && (gpuLabel.MatchString(f[1]) || strings.Contains(line, "CPU Affinity")) {
			at := strings.Index(line, "CPU Affinity")
			if at < 0 || !strings.Contains(line, "NUMA Affinity") {
				columns = 0
				continue
			}
			columns = len(strings.Fields(line[:at]))
			continue
		}
		m := gpuLabel.FindStringSubmatch(f[0])
		if m == nil || columns == 0 || len(f) < columns+3 || !affinityList.MatchString(f[columns+1]) {
			continue
		}
		index, err1 := strconv.Atoi(m[1])
		node, err2 := strconv.Atoi(f[columns+2])
		if err1 == nil && err2 == nil && index < maxCards && node >= 0 && node < maxNodes && len(b.host.TopoNodes) < maxCards {
			b.host.TopoNodes = append(b.host.TopoNodes, TopoNode{Card: b.cardName(index), Node: node, Source: "cmd:nvidia-smi topo -m"})
		}
	}
}

// maxShmErrors bounds the lines about shared memory that are kept.
const maxShmErrors = 8

var shmLine = regexp.MustCompile(`(?i)failed to extend /dev/shm|shared memory segment|/dev/shm.*no space left|posix_fallocate failed`)

// readShmErrors keeps what NCCL said of /dev/shm in logs and output of tests: the first error of a run is often
// another rank's echo of it.
func readShmErrors(b *builder) {
	for _, path := range []string{ProbeDebugPath, ProbeTextPath} {
		raw, ok := b.read(path)
		if !ok {
			continue
		}
		for _, line := range strings.Split(string(raw), "\n") {
			if len(b.host.Software.ShmErrors) >= maxShmErrors {
				return
			}
			if line = line[:min(len(line), lineLimit)]; !shmLine.MatchString(line) {
				continue
			}
			if _, rest, ok := strings.Cut(line, "NCCL WARN "); ok {
				line = rest
			}
			line = strings.TrimSpace(line)
			b.host.Software.ShmErrors = append(b.host.Software.ShmErrors, Named{Name: "/dev/shm", Value: line[:min(len(line), 240)], Source: source(path)})
		}
	}
}
