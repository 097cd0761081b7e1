package facts

import (
	"fmt"
	"strings"
	"testing"
)

// Made-up pieces of machines, for pastes that mix or cut them.
func busOfCards(product string, buses ...string) string {
	out := "00:00.0 Host bridge [0600]: AMD [1022:1480]\n"
	for _, b := range buses {
		out += b + ":00.0 VGA compatible controller [0300]: NVIDIA Corporation Device [10de:" + product + "] (rev a1)\n"
	}
	return out
}

func longSMI(attached int, name, device string, buses ...string) string {
	out := fmt.Sprintf("==============NVSMI LOG==============\n\nDriver Version                            : 580.95.05\nCUDA Version                              : 13.0\n\nAttached GPUs                             : %d\n", attached)
	for _, b := range buses {
		out += fmt.Sprintf("GPU 00000000:%s:00.0\n    Product Name                          : %s\n    PCI\n        Device Id                         : 0x%s10DE\n"+
			"    FB Memory Usage\n        Total                             : 24564 MiB\n    BAR1 Memory Usage\n        Total                             : 256 MiB\n    Ecc Mode\n        Current                           : N/A\n\n", strings.ToUpper(b), name, strings.ToUpper(device))
	}
	return out
}

func fromPaste(t *testing.T, text string) *Host {
	t.Helper()
	d := NewDumps()
	if err := d.Add("paste.txt", []byte(text)); err != nil {
		t.Fatal(err)
	}
	return FromSnapshot(d.Snapshot())
}

func TestOutputsOfTwoMachinesAreNotJoined(t *testing.T) {
	rows := map[string]struct {
		text     string
		cards    int
		conflict string // path of one that is noted; "" for none at all
		gap      string // why nvidia-smi was not read
	}{
		"one machine":                  {busOfCards("2684", "01", "41") + longSMI(2, "NVIDIA GeForce RTX 4090", "2684", "01", "41"), 2, "", ""},
		"one card lost by the driver":  {busOfCards("2684", "01", "41") + longSMI(1, "NVIDIA GeForce RTX 4090", "2684", "01"), 2, "", ""},
		"bus of one, driver of other":  {busOfCards("2684", "01", "41") + longSMI(2, "NVIDIA GeForce RTX 4090", "2684", "02", "03"), 2, "cards", "another machine"},
		"part of a bus says nothing":   {"41:00.0 VGA compatible controller [0300]: NVIDIA Corporation Device [10de:2684] (rev a1)\n" + longSMI(1, "NVIDIA GeForce RTX 4090", "2684", "01"), 2, "", ""},
		"a bus without cards (WSL)":    {"0000:00:00.0 Host bridge [0600]: Microsoft [1414:1]\n" + longSMI(1, "NVIDIA GeForce RTX 4090", "2684", "01"), 1, "", ""},
		"two logs, one place, 2 cards": {longSMI(1, "NVIDIA GeForce RTX 4090", "2684", "01") + longSMI(1, "NVIDIA GeForce RTX 3090", "2204", "01"), 1, "cards[0000:01:00.0].name", ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			h := fromPaste(t, row.text)
			if len(h.Cards) != row.cards {
				t.Errorf("%d cards, want %d", len(h.Cards), row.cards)
			}
			paths := ""
			for _, c := range h.Conflicts {
				paths += c.Path + " "
			}
			if row.conflict == "" && paths != "" || !strings.Contains(paths, row.conflict) {
				t.Errorf("conflicts %q, want %q", paths, row.conflict)
			}
			if !strings.Contains(h.Gaps[KindSMI], row.gap) {
				t.Errorf("gap %q", h.Gaps[KindSMI])
			}
			for _, c := range h.Cards { // a second log is no second look at the same card
				if c.SMIDevice.Known() && c.SMIDevice.Value != c.Product {
					t.Errorf("%s is %s and %s", c.BDF, c.Product, c.SMIDevice.Value)
				}
			}
		})
	}
}

// Behind a cut, lines of nvidia-smi -q may be of another card than the last heading's.
func TestCutLinesAreOfNobody(t *testing.T) {
	whole := longSMI(2, "NVIDIA GeForce RTX 4090", "2684", "01", "41")
	cutAt := strings.Index(whole, "    FB Memory Usage")
	secondBAR := strings.LastIndex(whole, "    BAR1 Memory Usage")
	one := longSMI(1, "NVIDIA GeForce RTX 4090", "2684", "01")
	oneCut := strings.Index(one, "    FB Memory Usage")
	oneBAR := strings.Index(one, "    BAR1 Memory Usage")
	for _, dots := range []string{"...", "[...]", "…", "    ...", "---- snip ----", "<snip>", "(output truncated)", "省略"} {
		if h := fromPaste(t, whole[:cutAt]+dots+"\n"+whole[secondBAR:]); len(h.Cards) != 1 || h.Cards[0].BAR1MiB.Known() {
			t.Errorf("%q: of two cards, BAR1 is %v", dots, h.Cards[0].BAR1MiB)
		}
		if h := fromPaste(t, one[:oneCut]+dots+"\n"+one[oneBAR:]); len(h.Cards) != 1 || h.Cards[0].BAR1MiB.Value != 256 {
			t.Errorf("%q: of the only card, BAR1 is %v", dots, h.Cards[0].BAR1MiB)
		}
	}
}

func TestALostCardHasNoName(t *testing.T) {
	h := fromPaste(t, longSMI(2, "NVIDIA GeForce RTX 4090", "2684", "01")+"GPU 00000000:41:00.0\n    Product Name                          : [GPU is lost]\n    Performance State                     : GPU is lost\n")
	if c := h.Cards[1]; c.Name.Known() || c.PState.Known() || c.Sick.Value != "GPU is lost" {
		t.Errorf("%v %v %v", c.Name, c.PState, c.Sick)
	}
}

func TestLscpuInFourTongues(t *testing.T) {
	for name, text := range map[string]string{
		"English": "Architecture:        x86_64\nCPU(s):              64\nModel name:          AMD EPYC 7542 32-Core Processor\nThread(s) per core:  1\nCore(s) per socket:  32\nSocket(s):           2\nNUMA node(s):        2\nNUMA node0 CPU(s):   0-31\n",
		"German":  "Architektur:         x86_64\nCPU(s):              64\nModellname:          AMD EPYC 7542 32-Core Processor\nThread(s) pro Kern:  1\nKern(e) pro Sockel:  32\nSockel:              2\nNUMA-Knoten:         2\nNUMA-Knoten0 CPU(s): 0-31\n",
		"French":  "Architecture :       x86_64\nProcesseur(s) :      64\nNom de modèle :      AMD EPYC 7542 32-Core Processor\nThread(s) par cœur : 1\nCœur(s) par socket : 32\nSocket(s) :          2\nNœud(s) NUMA :       2\nProcesseur(s) du nœud NUMA 0 : 0-31\n",
		"Chinese": "架构：           x86_64\nCPU:             64\n型号名称：       AMD EPYC 7542 32-Core Processor\n每个核的线程数： 1\n每个座的核数：   32\n座：             2\nNUMA 节点：      2\nNUMA 节点0 CPU： 0-31\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := fromPaste(t, text).CPU
			if c.Threads.Value != 64 || c.Cores.Value != 64 || c.Sockets.Value != 2 || c.Nodes.Value != 2 || c.Model.Value != "AMD EPYC 7542 32-Core Processor" || len(c.NUMA) != 1 || c.NUMA[0].CPUs != "0-31" {
				t.Errorf("%+v", c)
			}
		})
	}
}

// Of a list that was cut, the sum is no sum.
func TestACutListIsNoCount(t *testing.T) {
	array := "# dmidecode 3.5\nHandle 0x000F, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: System Memory\n\tError Correction Type: None\n\tNumber Of Devices: 2\n\n"
	module := "Handle 0x0011, DMI type 17, 92 bytes\nMemory Device\n\tSize: 32 GB\n\tLocator: DIMM_A1\n\tType: DDR4\n\n"
	for name, row := range map[string]struct {
		text string
		mib  int64
	}{
		"whole":                       {array + module + module, 65536},
		"cut":                         {array + module, 0},
		"firmware lists no empty one": {array + module + "Handle 0x00FF, DMI type 127, 4 bytes\nEnd Of Table\n", 32768},
		"modules alone":               {module, 32768},
	} {
		if got := fromPaste(t, row.text).Memory.InstalledMiB.Value; got != row.mib {
			t.Errorf("%s: %d MiB, want %d", name, got, row.mib)
		}
	}
	section := func(heading, body string) string { return ruler + "\n" + heading + "\n\n" + body }
	start := ruler + "\nStart of NVIDIA bug report log file.\n\n"
	bus := busOfCards("2684", "01", "41", "81")
	_, h := readReport(t, strings.NewReader(start+section("/usr/bin/lspci -nn", bus[:len(bus)-20])))
	if _, partly := h.Gaps[KindPCI]; !partly || len(h.Cards) == 0 {
		t.Errorf("half a bus counts as the whole: %d cards", len(h.Cards))
	}
	_, h = readReport(t, strings.NewReader(start+section("*** /proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7542\nphysical id\t: 0\ncore id\t\t: 0\n")))
	if h.CPU.Cores.Known() {
		t.Errorf("half a list of processors counts %d", h.CPU.Cores.Value)
	}
	_, h = readReport(t, strings.NewReader(start+section("/usr/sbin/dmidecode", "# dmidecode 3.5\nHandle 0x0002, DMI type 2, 15 bytes\nBase Board Information\n\tProduct Name: X\n\n"+module)))
	if h.Memory.InstalledMiB.Known() || h.Board.Name.Value != "X" {
		t.Errorf("half a table: %v, %v", h.Memory.InstalledMiB, h.Board.Name)
	}
}
