package facts

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	tableVersions = regexp.MustCompile(`NVIDIA-SMI\s+(\S+)\s+(?:KMD Version|Driver Version): (\S+)(?:\s+CUDA (?:UMD )?Version: (\S+))?`)
	tableCard     = regexp.MustCompile(`^\s*(\d+)\s+(\S.*?)\s+(On|Off|N/A|WDDM|TCC|MCDM|ERR!)\s*$`)
	tableBus      = regexp.MustCompile(`^\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s+(On|Off|N/A|ERR!)\s*$`)
	tableState    = regexp.MustCompile(`^\s*(\S+)\s+(\S+)\s+(P\d+|N/A|ERR!|Unknown)\s+(\S+)\s*/\s*(\S+)\s*$`)
	tableMemory   = regexp.MustCompile(`^\s*(\S+)\s*/\s*(\S+)\s*$`)
	tableLoad     = regexp.MustCompile(`^\s*(\S+)\s+(Default|E\. Process|E\. Thread|Prohibited)\s*$`)
	tableProcess  = regexp.MustCompile(`^\|\s+(\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d+)\s+(C|G|C\+G|M|M\+C)\s+\S`)
)

// parseSMITable reads the plain table of nvidia-smi: two or three lines a card between bars, in the layouts of drivers
// before and after 2023 and with MIG. Names that the table cut ("NVIDIA RTX 6000 Ada Gene...") are absent.
func parseSMITable(d dumpFile) (Driver, []Card) {
	var driver Driver
	var cards []Card
	procs := map[int]int{}
	listed := false
	for _, line := range d.lines() {
		if m := tableVersions.FindStringSubmatch(line); m != nil {
			driver.Version = smiText(d.src("Driver Version"), m[2])
			driver.CUDA = smiText(d.src("CUDA Version"), m[3])
			continue
		}
		if strings.Contains(line, "Processes:") {
			listed = true
		}
		if m := tableProcess.FindStringSubmatch(line); m != nil && listed {
			if n, err := strconv.Atoi(m[1]); err == nil && strings.Contains(m[3], "C") {
				procs[n]++
			}
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || len(cards) > maxCards {
			continue
		}
		if c, ok := tableHead(d, cells); ok {
			cards = append(cards, c)
			continue
		}
		if len(cards) > 0 {
			tableBody(d, &cards[len(cards)-1], cells)
		}
	}
	if len(cards) > 0 {
		driver.Attached = Of(len(cards), d.src("table"))
		driver.Loaded = Of(true, d.src("table"))
	}
	for i := range cards {
		if n, ok := cards[i].Index.Get(); ok && listed {
			cards[i].Processes = Of(procs[n], d.src("Processes"))
		}
	}
	return driver, cards
}

// tableHead reads a card's first line: index, name, persistence | address, display | ECC errors.
func tableHead(d dumpFile, cells []string) (Card, bool) {
	m, bus := tableCard.FindStringSubmatch(cells[0]), tableBus.FindStringSubmatch(cells[1])
	if m == nil || bus == nil {
		return Card{}, false
	}
	c := Card{Device: Device{BDF: smiBDF(bus[1]), Class: "030000", Vendor: "10de"}}
	c.Index = lspciInt(m[1], 10, d.src("GPU"))
	if name := strings.TrimPrefix(m[2], "NVIDIA "); !strings.HasSuffix(name, "...") {
		c.Name = smiText(d.src("Name"), name)
	}
	switch m[3] {
	case "On", "Off":
		c.Persistence = Of(m[3] == "On", d.src("Persistence-M"))
	}
	switch bus[2] {
	case "On", "Off":
		c.Display = Of(bus[2] == "On", d.src("Disp.A"))
	}
	if ecc := strings.TrimSpace(cells[2]); ecc == "Off" {
		c.ECC = Of(false, d.src("Volatile Uncorr. ECC"))
	} else if n, err := strconv.ParseInt(ecc, 10, 64); err == nil && n >= 0 {
		c.ECC, c.ECCVolatile = Of(true, d.src("Volatile Uncorr. ECC")), Of(n, d.src("Volatile Uncorr. ECC"))
	}
	c.tableSick(d, m[2]+" "+m[3], bus[2], cells[2])
	return c, bdfPattern.MatchString(c.BDF)
}

// tableBody reads the lines below: fan, temperature, state, watts | memory | load, compute mode; then MIG.
func tableBody(d dumpFile, c *Card, cells []string) {
	if m := tableState.FindStringSubmatch(cells[0]); m != nil {
		c.Temperature = tableInt[int](d.src("Temp"), strings.TrimSuffix(m[2], "C"))
		c.PState = smiText(d.src("Perf"), m[3])
		c.PowerDraw, c.PowerLimit = tableFloat(d.src("Pwr:Usage"), m[4]), tableFloat(d.src("Pwr:Cap"), m[5])
		c.tableSick(d, cells[0])
		if u := tableMemory.FindStringSubmatch(cells[1]); u != nil {
			c.UsedMiB, c.MemoryMiB = tableInt[int64](d.src("Memory-Usage"), u[1]), tableInt[int64](d.src("Memory-Usage"), u[2])
		}
		c.tableSick(d, cells[1], cells[2])
		if u := tableLoad.FindStringSubmatch(cells[2]); u != nil {
			c.Utilization = tableInt[int](d.src("GPU-Util"), u[1])
			mode := strings.NewReplacer("E. Process", "Exclusive_Process", "E. Thread", "Exclusive_Thread").Replace(u[2])
			c.ComputeMode = Of(mode, d.src("Compute M."))
		}
		return
	}
	if mig := strings.TrimSpace(cells[2]); strings.TrimSpace(cells[0]) == "" && strings.TrimSpace(cells[1]) == "" {
		switch strings.TrimSuffix(mig, "*") {
		case "Enabled", "Disabled":
			c.MIG = Of(strings.HasPrefix(mig, "Enabled"), d.src("MIG M."))
		}
	}
}

// tableSick notes ERR!, which stands where the driver could not read a card.
func (c *Card) tableSick(d dumpFile, texts ...string) {
	for _, t := range texts {
		if m := lost.FindString(t); m != "" && !c.Sick.Known() {
			c.Sick = Of(m, d.src("table"))
		}
	}
}

func tableInt[N int | int64](src, s string) Fact[N] { return smiInt[N](src, s) }

func tableFloat(src, s string) Fact[float64] { return smiFloatFact(src, s) }

// readSMITable adds what the plain table says, and why nvidia-smi failed where it did.
func readSMITable(b *builder) {
	for _, d := range b.dumps(dumpSMITable) {
		driver, cards := parseSMITable(d)
		if m := smiFailure.FindString(head([]byte(d.text))); m != "" && !driver.SMIError.Known() {
			driver.SMIError = Of(strings.TrimSpace(m), d.src("output"))
		}
		if _, missing := b.host.Gaps[KindSMI]; missing && driver.SMIError.Known() {
			b.regap(KindSMI, "nvidia-smi failed: %s", driver.SMIError.Value)
		}
		if b.otherMachine(d.name, cards) {
			continue
		}
		b.merge("driver", &b.host.Driver, &driver)
		for _, c := range cards {
			b.mergeCard(c)
		}
		b.sortCards()
		if len(cards) > 0 {
			b.filled(KindSMI)
		}
	}
}
