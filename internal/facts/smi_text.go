package facts

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// The long text of `nvidia-smi -q` says what `-q -x` says, under other names. It is rewritten into that XML, so that one
// decoder knows the drivers' generations: indentation gives the nesting, and the tables below give the names.

// smiNames are elements whose XML name is not their text in snake case. A key is "parent element/Text"; "/Text" holds
// under every parent. Several names joined by "/" are nested elements.
var smiNames = map[string]string{
	"/GPU UUID": "uuid", "/Serial Number": "serial", "/FRU Part Number": "gpu_fru_part_number", "/Module ID": "gpu_module_id", "/Ecc Mode": "ecc_mode",
	"pci/Bus": "pci_bus", "pci/Device": "pci_device", "pci/Domain": "pci_domain", "pci/Bus Id": "pci_bus_id", "pci/Device Id": "pci_device_id",
	"pci/Sub System Id": "pci_sub_system_id", "pci/GPU Link Info": "pci_gpu_link_info", "pci/Bridge Chip": "pci_bridge_chip",
	"pci/Replays Since Reset": "replay_counter", "pci/Replays since reset": "replay_counter", "pci/Replay Number Rollovers": "replay_rollover_counter",
	"pci_gpu_link_info/PCIe Generation": "pcie_gen", "pci_gpu_link_info/Link Width": "link_widths",
	"pcie_gen/Max": "max_link_gen", "pcie_gen/Current": "current_link_gen", "pcie_gen/Device Current": "device_current_link_gen",
	"pcie_gen/Device Max": "max_device_link_gen", "pcie_gen/Host Max": "max_host_link_gen",
	"link_widths/Max": "max_link_width", "link_widths/Current": "current_link_width",
	"mig_mode/Current": "current_mig", "mig_mode/Pending": "pending_mig", "ecc_mode/Current": "current_ecc", "ecc_mode/Pending": "pending_ecc",
	"driver_model/Current": "current_dm", "driver_model/Pending": "pending_dm",
	"utilization/Gpu": "gpu_util", "utilization/GPU": "gpu_util", "utilization/Memory": "memory_util",
	"temperature/GPU Current Temp": "gpu_temp", "temperature/Gpu": "gpu_temp", "temperature/GPU T.Limit Temp": "gpu_temp_tlimit",
	"temperature/GPU Shutdown Temp": "gpu_temp_max_threshold", "temperature/GPU Slowdown Temp": "gpu_temp_slow_threshold",
	"temperature/GPU Max Operating Temp": "gpu_temp_max_gpu_threshold", "temperature/GPU Shutdown T.Limit Temp": "gpu_temp_max_tlimit_threshold",
	"temperature/GPU Slowdown T.Limit Temp": "gpu_temp_slow_tlimit_threshold", "temperature/GPU Max Operating T.Limit Temp": "gpu_temp_max_gpu_tlimit_threshold",
	"temperature/Memory Current Temp":             "memory_temp",
	"temperature/Memory Max Operating Temp":       "gpu_temp_max_mem_threshold",
	"gpu_power_readings/Instantaneous Power Draw": "instant_power_draw",
	"clocks/Graphics":                             "graphics_clock", "clocks/SM": "sm_clock", "clocks/Memory": "mem_clock", "clocks/Video": "video_clock",
	"max_clocks/Graphics": "graphics_clock", "max_clocks/SM": "sm_clock", "max_clocks/Memory": "mem_clock", "max_clocks/Video": "video_clock",
	"/SRAM Uncorrectable SEC-DED":       "sram_uncorrectable_secded",
	"retired_pages/Single Bit ECC":      "multiple_single_bit_retirement/retired_count",
	"retired_pages/Double Bit ECC":      "double_bit_retirement/retired_count",
	"retired_pages/Pending":             "pending_retirement",
	"remapped_rows/Correctable Error":   "remapped_row_corr",
	"remapped_rows/Uncorrectable Error": "remapped_row_unc", "remapped_rows/Pending": "remapped_row_pending",
	"remapped_rows/Remapping Failure Occurred": "remapped_row_failure", "remapped_rows/Bank Remap Availability Histogram": "row_remapper_histogram",
	"retired_pages/Pending Page Blacklist": "pending_retirement",
	"processes/Process ID":                 "process_info", "processes/Process Id": "process_info",
	"clocks_event_reasons_counters/SW Power Capping":    "clocks_event_reasons_counters_sw_power_cap",
	"clocks_event_reasons_counters/Sync Boost":          "clocks_event_reasons_counters_sync_boost",
	"clocks_event_reasons_counters/SW Thermal Slowdown": "clocks_event_reasons_counters_sw_therm_slowdown",
	"clocks_event_reasons_counters/HW Thermal Slowdown": "clocks_event_reasons_counters_hw_therm_slowdown",
	"clocks_event_reasons_counters/HW Power Braking":    "clocks_event_reasons_counters_hw_power_brake",
}

// smiReasons are the reasons that hold clocks down, whose element repeats its parent's name in the singular.
var smiReasons = map[string]string{"Idle": "gpu_idle", "Display Clock Setting": "display_clocks_setting"}

var (
	smiGPUHead  = regexp.MustCompile(`^\s*GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$`)
	smiNotSnake = regexp.MustCompile(`[^a-z0-9]+`)
)

// snipped is a line that stands for lines that somebody cut out.
var snipped = regexp.MustCompile(`(?i)^\s*(?:\[?(?:\.{3,}|…+)\]?|-+ ?(?:snip|8<|cut).*|<snip.*|\(?(?:output )?(?:truncated|omitted|skipped|省略).{0,40})\s*$`)

// smiDepth bounds nesting, smiNodes the lines of one text that are kept.
const (
	smiDepth = 8
	smiNodes = 100_000
)

// smiNode is one line of the text: an element with a value, children, or both.
type smiNode struct {
	name, value string
	kids        []*smiNode
}

func (n *smiNode) add(name, value string) *smiNode {
	kid := &smiNode{name: name, value: value}
	n.kids = append(n.kids, kid)
	return kid
}

// parseSMIText reads `nvidia-smi -q` as text, of any driver, whole, of one card, or with sections cut out. Text that was
// cut short gives what it holds.
func parseSMIText(text string) (*smiLog, error) {
	root := &smiNode{name: "nvidia_smi_log"}
	if !smiElements(root, text) {
		return nil, fmt.Errorf("no `GPU 00000000:01:00.0` in %d bytes", len(text))
	}
	var out bytes.Buffer
	root.write(&out)
	log := &smiLog{}
	if err := xml.Unmarshal(out.Bytes(), log); err != nil {
		return nil, err
	}
	return log, nil
}

// smiElements builds the elements; false when the text names neither a card nor a driver.
func smiElements(root *smiNode, text string) bool {
	type level struct {
		indent int
		node   *smiNode
	}
	stack := []level{{-1, root}}
	found, count, attached := false, 0, ""
	oneCard := strings.Count(text, "\nGPU ") < 2
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " \r")
		if count++; len(line) > lineLimit || count > smiNodes || strings.TrimSpace(line) == "" {
			continue
		}
		if m := smiGPUHead.FindStringSubmatch(line); m != nil {
			gpu := root.add("gpu", "")
			gpu.add("@id", m[1])
			stack, found = []level{{-1, root}, {indentOf(line), gpu}}, true
			continue
		}
		key, value, ok := smiPair(line)
		indent := indentOf(line)
		if indent == 0 && (key == "Driver Version" || key == "Attached GPUs" || key == "CUDA Version") {
			root.add(snake(key), value)
			if found = true; key == "Attached GPUs" {
				attached = value
			}
			continue
		}
		if snipped.MatchString(line) {
			if attached != "1" && attached != "" || !oneCard {
				stack = []level{{-1, root}} // what follows may be of another card
			}
			continue
		}
		for len(stack) > 1 && stack[len(stack)-1].indent >= indent {
			stack = stack[:len(stack)-1]
		}
		parent := stack[len(stack)-1].node
		if parent == root || !ok && strings.Trim(key, ".") == "" {
			continue
		}
		node := smiElement(parent, key, value)
		if len(stack) < smiDepth {
			stack = append(stack, level{indent, node})
		}
	}
	return found
}

// smiPair splits "Key   : value"; a heading has no colon of its own.
func smiPair(line string) (key, value string, isPair bool) {
	if i := strings.Index(line, " : "); i >= 0 {
		return strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+3:]), true
	}
	if key, ok := strings.CutSuffix(line, " :"); ok {
		return strings.TrimSpace(key), "", true
	}
	return strings.TrimSpace(line), "", false
}

// smiElement adds the element that a line stands for below its parent.
func smiElement(parent *smiNode, key, value string) *smiNode {
	if parent.name == "clocks_event_reason_hw_slowdown" || parent.name == "clocks_throttle_reason_hw_slowdown" {
		family := strings.TrimSuffix(parent.name, "_hw_slowdown")
		return parent.add("@sibling", value).as(family + "_" + snake(key))
	}
	name := snake(key)
	if n, ok := smiNames[parent.name+"/"+key]; ok {
		name = n
	} else if n, ok := smiNames["/"+key]; ok {
		name = n
	}
	if parent.name == "clocks_event_reasons" || parent.name == "clocks_throttle_reasons" {
		name = strings.TrimSuffix(parent.name, "s") + "_" + firstNonEmpty(smiReasons[key], snake(key))
	}
	if name == "pci_device_id" || name == "pci_sub_system_id" {
		value = strings.TrimPrefix(value, "0x")
	}
	outer, inner, nested := strings.Cut(name, "/")
	if nested {
		return parent.add(outer, "").add(inner, value)
	}
	return parent.add(name, value)
}

// as marks a node that the text nests and the XML does not.
func (n *smiNode) as(name string) *smiNode {
	n.kids = append(n.kids, &smiNode{name: name, value: n.value})
	n.value = ""
	return n
}

// write prints the elements as XML. A value that has children as well ("Process ID : 42") stands before them.
func (n *smiNode) write(out *bytes.Buffer) {
	name := n.name
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "x" + name
	}
	out.WriteString("<" + name)
	for _, k := range n.kids {
		if k.name == "@id" {
			out.WriteString(` id="` + k.value + `"`)
		}
	}
	out.WriteString(">")
	_ = xml.EscapeText(out, []byte(n.value))
	var after []*smiNode
	for _, k := range n.kids {
		switch k.name {
		case "@id":
		case "@sibling":
			after = append(after, k.kids...)
		default:
			k.write(out)
		}
	}
	out.WriteString("</" + name + ">")
	for _, k := range after {
		k.write(out)
	}
}

func snake(s string) string {
	return strings.Trim(smiNotSnake.ReplaceAllString(strings.ToLower(s), "_"), "_")
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// readSMIText adds what further XML and the text of `nvidia-smi -q` say.
func readSMIText(b *builder) {
	for _, d := range b.dumps(dumpSMIXML) {
		log, err := parseSMI([]byte(d.text))
		b.joinSMI(d, log, err)
	}
	for _, d := range b.dumps(dumpSMIText) {
		log, err := parseSMIText(d.text)
		b.joinSMI(d, log, err)
	}
}

func (b *builder) joinSMI(d dumpFile, log *smiLog, err error) {
	if m := smiFailure.FindString(head([]byte(d.text))); m != "" && !b.host.Driver.SMIError.Known() {
		b.host.Driver.SMIError = Of(strings.TrimSpace(m), d.src("output"))
	}
	if err != nil {
		if _, missing := b.host.Gaps[KindSMI]; missing {
			b.regap(KindSMI, "%s could not be read: %v", d.name, err)
		}
		return
	}
	s := b.side()
	listed := len(log.GPUs)
	s.applySMI(log)
	if why, odd := s.host.Gaps[KindSMI]; odd {
		b.regap(KindSMI, "%s", why)
		return
	}
	// Of one card alone (-i 3, or a paste), the place in the listing is not the driver's index.
	if n, ok := s.host.Driver.Attached.Get(); !ok || n != listed {
		for i := range s.host.Cards {
			s.host.Cards[i].Index = Fact[int]{}
		}
	}
	relabel(reflect.ValueOf(s.host), "nvidia-smi:", d.name+":")
	if b.otherMachine(d.name, s.host.Cards) {
		return
	}
	b.merge("driver", &b.host.Driver, &s.host.Driver)
	for _, c := range s.host.Cards {
		b.mergeCard(c)
	}
	b.sortCards()
	if listed > 0 {
		b.host.Driver.Loaded = First(b.host.Driver.Loaded, Of(true, d.src("GPU")))
		b.filled(KindSMI)
	}
}
