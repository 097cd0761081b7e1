package facts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// smiLog is `nvidia-smi -q -x`. The DTD number is no guide: elements were renamed within one DTD, so every
// generation's names are listed and whichever is present is used.
type smiLog struct {
	Driver   string   `xml:"driver_version"`
	CUDA     string   `xml:"cuda_version"`
	Attached string   `xml:"attached_gpus"`
	GPUs     []smiGPU `xml:"gpu"`
}

type smiGPU struct {
	ID          string `xml:"id,attr"`
	Name        string `xml:"product_name"`
	Arch        string `xml:"product_architecture"`
	Display     string `xml:"display_active"`
	Persistence string `xml:"persistence_mode"`
	MIG         string `xml:"mig_mode>current_mig"`
	UUID        string `xml:"uuid"`
	VBIOS       string `xml:"vbios_version"`
	Part        string `xml:"gpu_part_number"`
	Virt        string `xml:"gpu_virtualization_mode>virtualization_mode"`
	PCI         smiPCI `xml:"pci"`
	Fan         string `xml:"fan_speed"`
	PState      string `xml:"performance_state"`
	FBTotal     string `xml:"fb_memory_usage>total"`
	FBUsed      string `xml:"fb_memory_usage>used"`
	BAR1        string `xml:"bar1_memory_usage>total"`
	Compute     string `xml:"compute_mode"`
	Util        string `xml:"utilization>gpu_util"`
	Temp        string `xml:"temperature>gpu_temp"`

	smiHealth

	PowerNew smiPower     `xml:"gpu_power_readings"` // 535 and later
	PowerOld smiPower     `xml:"power_readings"`     // up to 525
	Procs    []smiProcess `xml:"processes>process_info"`
}

type smiPCI struct {
	Device    string `xml:"pci_device_id"`     // 268410DE: device, then vendor
	Subsystem string `xml:"pci_sub_system_id"` // 40BF1458
	MaxGen    string `xml:"pci_gpu_link_info>pcie_gen>max_link_gen"`
	CurGen    string `xml:"pci_gpu_link_info>pcie_gen>current_link_gen"`
	DevGen    string `xml:"pci_gpu_link_info>pcie_gen>max_device_link_gen"`
	HostGen   string `xml:"pci_gpu_link_info>pcie_gen>max_host_link_gen"`
	MaxWidth  string `xml:"pci_gpu_link_info>link_widths>max_link_width"`
	CurWidth  string `xml:"pci_gpu_link_info>link_widths>current_link_width"`
	Replays   string `xml:"replay_counter"`
}

type smiPower struct {
	Current   string `xml:"current_power_limit"`
	Enforced  string `xml:"enforced_power_limit"`
	Limit     string `xml:"power_limit"`
	Requested string `xml:"requested_power_limit"`
	Default   string `xml:"default_power_limit"`
	Min       string `xml:"min_power_limit"`
	Max       string `xml:"max_power_limit"`
	Instant   string `xml:"instant_power_draw"`
	Draw      string `xml:"power_draw"`
	Average   string `xml:"average_power_draw"`
}

type smiProcess struct {
	Kind string `xml:"type"`
}

// smiNumber is a number with the unit that nvidia-smi prints; everything else ("N/A", "None", "Requested
// functionality has been deprecated", "[Unknown Error]" …) is unknown, never 0.
var smiNumber = regexp.MustCompile(`^\s*(-?[0-9]+(?:\.[0-9]+)?)\s*(W|MiB|MHz|C|%|KB/s|us|x)?\s*$`)

// smiMost is more than any figure of a card; what is larger, or negative, was not printed by a driver.
const smiMost = 1e12

// maxCards bounds the cards of one host: more than any machine has, few enough that pairs can be compared.
const maxCards = 256

func smiFloat(s string) (float64, bool) {
	m := smiNumber.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(m[1], 64)
	return f, err == nil && f >= 0 && f <= smiMost
}

func smiFloatFact(src string, candidates ...string) Fact[float64] {
	for _, s := range candidates {
		if f, ok := smiFloat(s); ok {
			return Of(f, src)
		}
	}
	return Fact[float64]{}
}

func smiInt[N int | int64](src, s string) Fact[N] {
	if f, ok := smiFloat(s); ok {
		return Of(N(f), src)
	}
	return Fact[N]{}
}

func smiBool(src, s string) Fact[bool] {
	switch strings.TrimSpace(s) {
	case "Yes", "Enabled", "Active":
		return Of(true, src)
	case "No", "Disabled", "Not Active":
		return Of(false, src)
	}
	return Fact[bool]{}
}

func smiText(src, s string) Fact[string] {
	s = strings.TrimSpace(s)
	if s == "" || s == "N/A" || s == "[N/A]" || strings.HasPrefix(s, "Requested functionality") || lost.MatchString(s) {
		return Fact[string]{}
	}
	return Of(s, src)
}

// lost are values that a card gives only when the driver can no longer talk to it.
var lost = regexp.MustCompile(`(?i)(GPU is lost|Unknown Error|ERR!|GPU requires reset)`)

// smiFailure are the ways in which the whole command fails, on standard output or error.
var smiFailure = regexp.MustCompile(`(?m)^.*(No devices were found|has failed because it couldn't communicate|Failed to initialize NVML|couldn't find libnvidia-ml|Unable to determine the device handle|command not found|GPU access blocked).*$`)

// readSMI joins what the driver says of each card with its PCI function.
func readSMI(b *builder) {
	const path = "cmd/nvidia-smi-q.xml"
	it, seen := b.items[path]
	raw, ok := b.snap.Files[path]
	if seen {
		b.host.Driver.SMIExit = Of(it.RC, "cmd:nvidia-smi -q -x")
		if it.Status == StatusTimeout {
			b.host.Driver.SMIHung = Of(true, "cmd:nvidia-smi -q -x")
		}
	}
	if m := smiFailure.FindString(head(raw) + "\n" + head(b.snap.Files[path+".err"])); m != "" {
		b.host.Driver.SMIError = Of(strings.TrimSpace(m), "cmd:nvidia-smi -q -x")
	}
	if !ok || len(bytes.TrimSpace(raw)) == 0 {
		b.gap(KindSMI, "%s", b.why(path, "no nvidia-smi -q -x in the input"))
		return
	}
	log, err := parseSMI(raw)
	if err != nil {
		b.gap(KindSMI, "nvidia-smi -q -x could not be read: %v", err)
		return
	}
	b.applySMI(log)
}

// head is where a command that fails says so: its first lines.
func head(b []byte) string { return string(b[:min(len(b), 4096)]) }

// parseSMI decodes the XML. Output cut short gives an error: half a document must not be judged as whole.
func parseSMI(raw []byte) (*smiLog, error) {
	start := bytes.Index(raw, []byte("<nvidia_smi_log"))
	if start < 0 {
		return nil, fmt.Errorf("no <nvidia_smi_log> in %d bytes", len(raw))
	}
	if !bytes.Contains(raw, []byte("</nvidia_smi_log>")) {
		return nil, fmt.Errorf("it ends before </nvidia_smi_log>: the output was cut")
	}
	dec := xml.NewDecoder(bytes.NewReader(dropClocks(raw[start:])))
	dec.Strict = false
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	log := &smiLog{}
	if err := dec.Decode(log); err != nil {
		return nil, err
	}
	return log, nil
}

// dropClocks cuts the lists of supported clocks: most of the bytes, and nothing that is judged.
func dropClocks(raw []byte) []byte {
	const from, to = "<supported_clocks>", "</supported_clocks>"
	var out []byte
	for {
		i := bytes.Index(raw, []byte(from))
		if i < 0 {
			return append(out, raw...)
		}
		j := bytes.Index(raw[i:], []byte(to))
		if j < 0 {
			return append(out, raw...)
		}
		out, raw = append(out, raw[:i]...), raw[i+j+len(to):]
	}
}

func (b *builder) applySMI(log *smiLog) {
	const src = "nvidia-smi:"
	d := &b.host.Driver
	d.Version = First(smiText(src+"driver_version", log.Driver), d.Version)
	d.CUDA = smiText(src+"cuda_version", log.CUDA)
	d.Attached = smiInt[int](src+"attached_gpus", log.Attached)
	if !d.Loaded.Known() && d.Version.Known() && len(log.GPUs) > 0 {
		d.Loaded = Of(true, src+"driver_version")
	}
	ids := b.cardIDs()
	sort.SliceStable(log.GPUs, func(i, j int) bool { return smiBDF(log.GPUs[i].ID) < smiBDF(log.GPUs[j].ID) })
	for i, g := range log.GPUs {
		bdf := smiBDF(g.ID)
		if !bdfPattern.MatchString(bdf) {
			b.gap(KindSMI, "nvidia-smi names a card by what is no bus address")
			continue
		}
		if id := strings.ToLower(strings.TrimSpace(g.PCI.Device)); len(id) == 8 && id[4:] != "10de" {
			b.gap(KindSMI, "this is a look-alike of nvidia-smi: the card at %s is of vendor %s", bdf, id[4:])
			*d = Driver{}
			return
		}
		c := b.card(bdf)
		if c == nil && len(b.host.Cards) >= maxCards {
			b.gap(KindSMI, "nvidia-smi lists more than %d cards", maxCards)
			break
		}
		if c == nil {
			b.host.Cards = append(b.host.Cards, Card{Device: smiDevice(bdf, g)})
			c = &b.host.Cards[len(b.host.Cards)-1]
		}
		applyGPU(c, g)
		c.Index = Of(i, src+"gpu")
		if id := ids[bdf]; id != "" {
			c.ID = Of(id, src+"uuid")
		} else if strings.HasPrefix(g.UUID, "GPU-") && strings.Trim(g.UUID[4:], "-0xX*") != "" {
			c.ID = Of(HashUUID(g.UUID), src+"uuid")
		}
	}
	sort.SliceStable(b.host.Cards, func(i, j int) bool { return b.host.Cards[i].BDF < b.host.Cards[j].BDF })
}

// HashUUID is the identity that a card keeps when UUIDs are blanked: the first 12 hex digits of SHA-256.
func HashUUID(uuid string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(uuid)))
	return hex.EncodeToString(sum[:6])
}

// cardIDs are the identities kept beside a redacted snapshot: lines "BDF hash".
func (b *builder) cardIDs() map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(string(b.snap.Files["cmd/gpu-ids.txt"]), "\n") {
		if f := strings.Fields(line); len(f) == 2 {
			out[f[0]] = f[1]
		}
	}
	return out
}

func (b *builder) card(bdf string) *Card {
	for i := range b.host.Cards {
		if b.host.Cards[i].BDF == bdf {
			return &b.host.Cards[i]
		}
	}
	return nil
}

// smiBDF turns 00000000:84:00.0 into 0000:84:00.0.
func smiBDF(id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	if domain, rest, ok := strings.Cut(id, ":"); ok {
		return lspciBDF(domain, rest)
	}
	return id
}

// smiDevice is the PCI function as nvidia-smi alone describes it, for input that has no sysfs.
func smiDevice(bdf string, g smiGPU) Device {
	d := Device{BDF: bdf, Class: "030000", Vendor: "10de"}
	if id := strings.ToLower(strings.TrimSpace(g.PCI.Device)); len(id) == 8 {
		d.Product, d.Vendor = id[:4], id[4:]
	}
	if id := strings.ToLower(strings.TrimSpace(g.PCI.Subsystem)); len(id) == 8 {
		d.SubDev, d.SubVend = id[:4], id[4:]
	}
	return d
}

func applyGPU(c *Card, g smiGPU) {
	const src = "nvidia-smi:"
	if name := smiText(src+"product_name", g.Name); name.Known() {
		name.Value = strings.TrimPrefix(name.Value, "NVIDIA ")
		c.Name = name
	}
	c.Arch = smiText(src+"product_architecture", g.Arch)
	c.Part = smiText(src+"gpu_part_number", g.Part)
	c.VBIOS = smiText(src+"vbios_version", g.VBIOS)
	c.MemoryMiB = smiInt[int64](src+"fb_memory_usage/total", g.FBTotal)
	c.UsedMiB = smiInt[int64](src+"fb_memory_usage/used", g.FBUsed)
	c.BAR1MiB = First(c.BAR1MiB, smiInt[int64](src+"bar1_memory_usage/total", g.BAR1))
	c.PState = smiText(src+"performance_state", g.PState)
	c.Utilization = smiInt[int](src+"utilization/gpu_util", g.Util)
	c.Temperature = smiInt[int](src+"temperature/gpu_temp", g.Temp)
	c.Persistence = smiBool(src+"persistence_mode", g.Persistence)
	c.Display = smiBool(src+"display_active", g.Display)
	c.VirtMode = smiText(src+"gpu_virtualization_mode", g.Virt)
	c.ComputeMode = smiText(src+"compute_mode", g.Compute)
	c.MIG = smiBool(src+"mig_mode/current_mig", g.MIG)
	applyPower(c, g.PowerNew, g.PowerOld)
	applyHealth(c, g)
	c.Gen = SMILink{
		Current: smiInt[int](src+"pcie_gen/current_link_gen", g.PCI.CurGen), Max: smiInt[int](src+"pcie_gen/max_link_gen", g.PCI.MaxGen),
		DeviceMax: smiInt[int](src+"pcie_gen/max_device_link_gen", g.PCI.DevGen), HostMax: smiInt[int](src+"pcie_gen/max_host_link_gen", g.PCI.HostGen),
		Width: smiInt[int](src+"link_widths/current_link_width", g.PCI.CurWidth), WidthMax: smiInt[int](src+"link_widths/max_link_width", g.PCI.MaxWidth),
	}
	n := 0
	for _, p := range g.Procs {
		if strings.HasPrefix(strings.TrimSpace(p.Kind), "C") || strings.TrimSpace(p.Kind) == "M+C" {
			n++
		}
	}
	c.Processes = Of(n, src+"processes")
	for _, v := range []string{g.Name, g.Fan, g.Temp, g.PState, g.Util, g.FBTotal} {
		if m := lost.FindString(v); m != "" {
			c.Sick = Of(m, src+"gpu")
		}
	}
}

// applyPower takes the effective limit: current_power_limit since 535, enforced_power_limit before.
func applyPower(c *Card, now, old smiPower) {
	const src = "nvidia-smi:power_readings/"
	c.PowerDraw = smiFloatFact(src+"power_draw", now.Instant, now.Draw, now.Average, old.Draw)
	c.PowerLimit = smiFloatFact(src+"current_power_limit", now.Current, old.Enforced, old.Limit, now.Requested)
	c.PowerDefault = smiFloatFact(src+"default_power_limit", now.Default, old.Default)
	c.PowerMin = smiFloatFact(src+"min_power_limit", now.Min, old.Min)
	c.PowerMax = smiFloatFact(src+"max_power_limit", now.Max, old.Max)
}
