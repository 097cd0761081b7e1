package fleet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"preflight/internal/facts"
	"preflight/internal/report"
	"preflight/inventory"
)

// A snapshot made by hand, as large as the limits allow, is judged and shown in bounded time; what it says cannot move
// a cursor, and no two findings carry one id.
func TestAHostileSnapshotIsJudgedLikeAnyOther(t *testing.T) {
	s := &facts.Snapshot{Manifest: facts.Manifest{Schema: facts.SnapshotSchema, UID: -1}, Files: map[string][]byte{}, Links: map[string]string{}, Dirs: map[string][]string{}}
	var chain, log strings.Builder
	for i := range 31 {
		fmt.Fprintf(&chain, "0000:%02x:01.0/", i)
	}
	const dir = "sys/bus/pci/devices/"
	for i := range 2000 {
		bdf := fmt.Sprintf("%04x:%02x:00.0", i>>8, i&0xff)
		s.Links[dir+bdf] = "../../../devices/pci0000:00/" + chain.String() + bdf
		s.Files[dir+bdf+"/vendor"], s.Files[dir+bdf+"/class"], s.Files[dir+bdf+"/device"] = []byte("0x10de"), []byte("0x030000"), []byte("0x2684\x1b[2J")
		s.Files[dir+bdf+"/current_link_width"], s.Files[dir+bdf+"/max_link_width"] = []byte("4"), []byte("16")
	}
	for i := range 20_000 {
		fmt.Fprintf(&log, "[%d.0] NVRM: Xid (PCI:0000:%02x:00): %d, \x1b]0;owned\x07\u202e\n", i, i&0xff, i%200)
	}
	s.Files["cmd/dmesg.txt"] = []byte(log.String())
	s.Files["sys/class/dmi/id/board_name"] = []byte("Board\x1b[31m\r\n\xff\xfe")
	s.Files[facts.ProbeNCCLPath] = []byte(`[{"ranks":2,"rows":[{"bytes":1073741824,"busbw":1e300}],"error":"\u001b[2J"},{"ranks":2,"hung":true}]`)
	start := time.Now()
	r := Judge(&inventory.Rig{Name: "x"}, s, nil, nil)
	rep := &report.Report{Schema: report.Schema, Rigs: []report.Rig{{Name: "x", Verdict: r.Judged().Verdict(), Findings: r.Findings, Host: r.Host, Facts: facts.Tree(r.Host), Fixes: []report.Fix{}}}}
	rep.Finish()
	var text, js bytes.Buffer
	if err := report.WriteText(&text, rep, report.TextOptions{Verbose: true, Width: 40}); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteJSON(&js, rep); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, c := range []string{"\x1b", "\x07", "\r", "\u202e"} {
		if strings.Contains(text.String(), c) {
			t.Errorf("the report holds %q", c)
		}
	}
	ids := map[string]bool{}
	for _, f := range r.Findings {
		if ids[f.ID] {
			t.Errorf("two findings are called %s", f.ID)
		}
		ids[f.ID] = true
	}
}
