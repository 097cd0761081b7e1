package facts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// rawSnapshot is a snapshot that a host could send, or a hand could make, with nothing but these files.
func rawSnapshot(files map[string]string) *Snapshot {
	s := &Snapshot{Manifest: Manifest{Schema: SnapshotSchema, UID: -1}, Files: map[string][]byte{}, Links: map[string]string{}, Dirs: map[string][]string{}}
	for k, v := range files {
		s.Files[k] = []byte(v)
	}
	return s
}

// Nothing that a host sends may panic, take long, or make facts that JSON cannot hold.
func TestHostileInputGivesFactsOfABoundedKind(t *testing.T) {
	gpu := func(id, extra string) string { return `<gpu id="` + id + `">` + extra + `</gpu>` }
	smi := func(gpus string) string {
		return "<nvidia_smi_log><driver_version>550.1</driver_version><attached_gpus>1</attached_gpus>" + gpus + "</nvidia_smi_log>"
	}
	many := strings.Builder{}
	for i := range 20_000 {
		many.WriteString(gpu(fmt.Sprintf("%08x:%02x:00.0", i>>8, i&0xff), ""))
	}
	rows := map[string]map[string]string{
		"link speed NaN":     {pciDevices + "0000:01:00.0/vendor": "0x10de", pciDevices + "0000:01:00.0/class": "0x030000", pciDevices + "0000:01:00.0/current_link_speed": "nan GT/s", pciDevices + "0000:01:00.0/max_link_speed": "+Inf"},
		"link width huge":    {pciDevices + "0000:01:00.0/vendor": "0x10de", pciDevices + "0000:01:00.0/class": "0x030000", pciDevices + "0000:01:00.0/current_link_width": "-9223372036854775808", pciDevices + "0000:01:00.0/max_link_width": "9223372036854775807"},
		"uptime infinite":    {"proc/uptime": "Inf NaN"},
		"bandwidth infinite": {ProbeTextPath: "#  algbw busbw\n 8 2 float sum -1 0.00 inf inf 0 0.00 nan nan 0\n"},
		"sample without a source": {
			pciDevices + "0000:01:00.0/vendor": "0x10de", pciDevices + "0000:01:00.0/class": "0x030000",
			ProbeLinksPath: `[{"bdf":"0000:01:00.0","width":16,"speed_gts":16,"loaded":true}]`,
		},
		"memory beyond any number": {"cmd/nvidia-smi-q.xml": smi(gpu("00000000:01:00.0", "<fb_memory_usage><total>"+strings.Repeat("9", 300)+" MiB</total></fb_memory_usage><gpu_power_readings><current_power_limit>-5 W</current_power_limit></gpu_power_readings>"))},
		"cards without end":        {"cmd/nvidia-smi-q.xml": smi(many.String())},
		"an index beyond any card": {"cmd/topo-m.txt": "\tGPU0\tGPU1\nGPU9223372036854775807\tPIX\tX\n"},
		"a matrix without end":     {"cmd/topo-m.txt": strings.Repeat("GPU0\t", 20_000) + "\n" + strings.Repeat("GPU1"+strings.Repeat(" PIX", 20_000)+"\n", 100)},
		"300 cards, a long log":    hostileLog(300, 5000),
		"two MiB of kernel log":    {"cmd/dmesg.txt": strings.Repeat("[    1.0] nvidia 0000:01:00.0: BAR 1 [mem size 0x8]: NVRM: AMD-Vi: DMAR: PCIe Bus Error\n", 25_000)},
		"one line of 16 MiB":       {"cmd/dmesg.txt": "NVRM: " + strings.Repeat("GPU at PCI:", 1<<20), ProbeTextPath: strings.Repeat("# Rank ", 1<<20), "cmd/topo-m.txt": strings.Repeat("\x1b[", 1<<20)},
		"XML within XML":           {"cmd/nvidia-smi-q.xml": smi(strings.Repeat("<gpu>", 50_000))},
		"probe result of nobody":   {ProbeNCCLPath: `[{"ranks":-1,"rows":[{"bytes":-1,"busbw":-1e308}],"wrong":-9}]`},
	}
	for name, files := range rows {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			h := FromSnapshot(rawSnapshot(files))
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			if _, err := json.Marshal(Tree(h)); err != nil {
				t.Errorf("the facts are no JSON: %v", err)
			}
			if len(h.Cards) > 300 || h.Driver.Attached.Value < 0 || h.Driver.Attached.Value > math.MaxInt16 {
				t.Errorf("%d cards, %d attached", len(h.Cards), h.Driver.Attached.Value)
			}
			for _, c := range h.Cards {
				if c.MemoryMiB.Value < 0 || c.PowerLimit.Value < 0 || c.Link.Width.Value < 0 || c.Link.Width.Value > 64 {
					t.Errorf("%s: memory %d, limit %g, width %d", c.BDF, c.MemoryMiB.Value, c.PowerLimit.Value, c.Link.Width.Value)
				}
			}
		})
	}
}

func hostileLog(cards, events int) map[string]string {
	var smi, log bytes.Buffer
	smi.WriteString("<nvidia_smi_log>")
	for i := range cards {
		fmt.Fprintf(&smi, `<gpu id="%08x:%02x:00.0"></gpu>`, i>>8, i&0xff)
	}
	smi.WriteString("</nvidia_smi_log>")
	for i := range events {
		fmt.Fprintf(&log, "[%d.0] NVRM: Xid (PCI:%04x:%02x:00): %d, pid=1\n", i, i%cards>>8, i%cards&0xff, 13+i%100)
	}
	return map[string]string{"cmd/nvidia-smi-q.xml": smi.String(), "cmd/dmesg.txt": log.String()}
}

// A flood of harmless messages must not hide the one that matters.
func TestAFloodOfXidsHidesNoFallenCard(t *testing.T) {
	log := strings.Repeat("[   10.0] NVRM: Xid (PCI:0000:01:00): 31, pid=7, MMU fault\n", 3000) +
		"[ 4000.0] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.\n"
	h := FromSnapshot(rawSnapshot(map[string]string{"cmd/dmesg.txt": log}))
	for _, e := range h.Log.Events {
		if e.Code == 79 {
			return
		}
	}
	t.Errorf("Xid 79 is not among %d events", len(h.Log.Events))
}

func TestAddressesOfCardsAreAddresses(t *testing.T) {
	h := FromSnapshot(rawSnapshot(map[string]string{"cmd/nvidia-smi-q.xml": `<nvidia_smi_log><gpu id="; rm -rf ~; "></gpu><gpu id="` + "\x1b[2J" + `"></gpu></nvidia_smi_log>`}))
	for _, c := range h.Cards {
		if !bdfPattern.MatchString(c.BDF) {
			t.Errorf("a card is called %q", c.BDF)
		}
	}
}
