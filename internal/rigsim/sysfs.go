package rigsim

import (
	"fmt"
	"strconv"
	"strings"
)

// gts prints a generation as sysfs does since kernel 5.7.
func gts(gen int) string {
	return []string{"Unknown", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe"}[gen]
}

// writePCI lays out /sys/bus/pci and the device directories behind it.
func writePCI(t *tree, m *machine) {
	for i, d := range m.Devs {
		dir := d.path()
		t.link("sys/bus/pci/devices/"+d.BDF, dir)
		writeFunction(t, m, d)
		group := fmt.Sprintf("sys/kernel/iommu_groups/%d", i)
		t.file(group+"/type", or(m.IOMMUType, "identity"))
		t.link(dir+"/iommu_group", group)
		if d.Driver != "" {
			t.mkdir("sys/bus/pci/drivers/" + d.Driver)
			t.link(dir+"/driver", "sys/bus/pci/drivers/"+d.Driver)
		}
		if d.Physfn != nil {
			t.link(dir+"/physfn", d.Physfn.path())
		}
	}
	writePortServices(t, m)
	for i, c := range m.Cards {
		slot := fmt.Sprintf("sys/bus/pci/slots/%d/", i+1)
		t.file(slot+"address", fmt.Sprintf("0000:%02x:00", c.Port.Second))
		t.file(slot+"cur_bus_speed", gts(max(1, c.Port.Gen)))
		t.file(slot+"max_bus_speed", gts(c.Port.MaxGen))
	}
	for bus := range m.Board.RootBuses {
		t.file(fmt.Sprintf("sys/class/iommu/ivhd%d/amd-iommu/cap", bus), "40090f80")
	}
}

func writeFunction(t *tree, m *machine, d *device) {
	f := func(name, value string) { t.file(d.path()+"/"+name, value) }
	f("modalias", fmt.Sprintf("pci:v%sd%ssv%ssd%sbc%ssc%si%s", wide(d.Vendor), wide(d.Device), wide(d.SubVendor), wide(d.SubDevice),
		strings.ToUpper(d.Class[:2]), strings.ToUpper(d.Class[2:4]), strings.ToUpper(d.Class[4:])))
	f("class", "0x"+d.Class)
	f("vendor", "0x"+d.Vendor)
	f("device", "0x"+d.Device)
	f("subsystem_vendor", "0x"+d.SubVendor)
	f("subsystem_device", "0x"+d.SubDevice)
	f("revision", "0xa1")
	f("resource", resourceText(d))
	f("numa_node", strconv.Itoa(m.node(d.Socket)))
	f("local_cpulist", m.cpuList(d.Socket))
	f("power_state", "D0")
	if d.Kind != 0xff && d.Physfn == nil {
		writeLink(f, d)
		f("aer_dev_correctable", strings.Replace(aerText("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF", "TOTAL_ERR_COR"), "BadTLP 0", fmt.Sprintf("BadTLP %d", d.LinkErrors), 1))
		f("aer_dev_fatal", aerText(append(uncorrectable, "TOTAL_ERR_FATAL")...))
		f("aer_dev_nonfatal", aerText(append(uncorrectable, "TOTAL_ERR_NONFATAL")...))
	}
	if d.Class == "060400" {
		f("secondary_bus_number", strconv.Itoa(d.Second))
		f("subordinate_bus_number", strconv.Itoa(d.Subord))
	}
	if d.Kind == 4 {
		for _, kind := range []string{"cor", "fatal", "nonfatal"} {
			f("aer_rootport_total_err_"+kind, "0")
		}
	}
	if strings.HasPrefix(d.Class, "0300") {
		boot := "0"
		if d.IsVGABoot {
			boot = "1"
		}
		f("boot_vga", boot)
	}
	if len(d.ReBAR) > 0 {
		mask := 0
		for _, n := range d.ReBAR {
			mask |= n
		}
		f("resource1_resize", fmt.Sprintf("%016x", mask))
		f("reset_method", "pm bus")
	}
	config := configOf(d)
	if m.User {
		config = config[:min(len(config), 64)] // all that the kernel gives to a plain user
	}
	t.bytes(d.path()+"/config", config, 0o644)
}

var uncorrectable = []string{
	"Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC", "UnsupReq", "ACSViol", "UncorrIntErr", "BlockedTLP",
	"AtomicOpBlocked", "TLPBlockedErr", "PoisonTLPBlocked",
}

func aerText(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(n + " 0\n")
	}
	return b.String()
}

// writeLink writes the link attributes; a card that left the bus answers all ones, which read as width 63.
func writeLink(f func(string, string), d *device) {
	if d.Dead {
		f("current_link_width", "63")
		f("max_link_width", "63")
		f("current_link_speed", "Unknown")
		f("max_link_speed", "Unknown")
		return
	}
	f("current_link_width", strconv.Itoa(d.Width))
	f("max_link_width", strconv.Itoa(d.MaxWidth))
	f("current_link_speed", gts(d.Gen))
	f("max_link_speed", gts(d.MaxGen))
}

func wide(hex string) string {
	return strings.ToUpper(strings.Repeat("0", 8-len(hex)) + hex)
}

// resourceText is sysfs `resource`: six BARs, the ROM, six SR-IOV BARs and four bridge windows.
func resourceText(d *device) string {
	var lines [17][3]uint64
	for _, b := range d.BARs {
		if b.Unset {
			lines[b.Index] = [3]uint64{0, b.Size - 1, b.Flags | flagUnset}
			continue
		}
		lines[b.Index] = [3]uint64{b.Start, b.Start + b.Size - 1, b.Flags}
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "0x%016x 0x%016x 0x%016x\n", l[0], l[1], l[2])
	}
	return b.String()
}

// node is the NUMA node of a socket; single-socket desktop boards have none.
func (m *machine) node(socket int) int {
	if m.Board.Sockets == 1 {
		return 0
	}
	return socket
}

// cpuList lists a socket's threads as Linux numbers them: all cores first, then their second threads.
func (m *machine) cpuList(socket int) string {
	all := m.Cores * m.Board.Sockets
	from := socket * m.Cores
	return fmt.Sprintf("%d-%d,%d-%d", from, from+m.Cores-1, all+from, all+from+m.Cores-1)
}

// writeSys lays out the rest of /sys: firmware, topology, memory, modules, disks and network.
func writeSys(t *tree, m *machine) {
	writeDMI(t, m)
	writeEFI(t, m)
	threads := m.Cores * m.Board.Sockets * 2
	cpu := fmt.Sprintf("0-%d", threads-1)
	for _, name := range []string{"online", "possible"} {
		t.file("sys/devices/system/cpu/"+name, cpu)
		nodes := "0"
		if m.Board.Sockets > 1 {
			nodes = fmt.Sprintf("0-%d", m.Board.Sockets-1)
		}
		t.file("sys/devices/system/node/"+name, nodes)
	}
	for s := range m.Board.Sockets {
		dir := fmt.Sprintf("sys/devices/system/node/node%d/", s)
		t.file(dir+"cpulist", m.cpuList(s))
		var distance []string
		for o := range m.Board.Sockets {
			distance = append(distance, map[bool]string{true: "10", false: "32"}[o == s])
		}
		t.file(dir+"distance", strings.Join(distance, " "))
		t.file(dir+"meminfo", fmt.Sprintf("Node %d MemTotal:       %d kB\nNode %d MemFree:        %d kB", s, m.nodeGiB(s)<<20, s, m.nodeGiB(s)<<19))
		t.num(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/physical_package_id", s*m.Cores), s)
	}
	t.file("sys/devices/system/memory/block_size_bytes", "80000000")
	for i := range m.ramGiB() / 2 {
		t.file(fmt.Sprintf("sys/devices/system/memory/memory%d/state", i), "online")
	}
	if m.Board.Server {
		t.file("sys/devices/system/edac/mc/mc0/mc_name", fmt.Sprintf("F%xh", m.CPU.Family))
		t.num("sys/devices/system/edac/mc/mc0/ce_count", 0)
		t.num("sys/devices/system/edac/mc/mc0/ue_count", 0)
	}
	t.file("sys/class/powercap/intel-rapl:0/name", "package-0")
	if m.Module == "nvidia" {
		for _, name := range []string{"nvidia", "nvidia_drm", "nvidia_uvm"} {
			t.file("sys/module/"+name+"/version", m.Driver)
			t.file("sys/module/"+name+"/initstate", "live")
			t.file("sys/module/"+name+"/refcnt", "2")
		}
	} else {
		t.file("sys/module/nouveau/initstate", "live")
		t.file("sys/module/nouveau/refcnt", strconv.Itoa(len(m.onBus())))
	}
}

// nodeGiB is the memory of one node, a node being a socket: that of the modules in its sockets.
func (m *machine) nodeGiB(socket int) int {
	n := 0
	for i := range m.DIMMsUsed {
		if _, s, _ := m.dimmPlace(i); s == socket {
			n++
		}
	}
	return n * m.DIMMGiB
}

func (m *machine) ramGiB() int { return m.DIMMGiB * m.DIMMsUsed }

// writeBlocks lays out disks and network devices below the functions that drive them.
func writeBlocks(t *tree, m *machine) {
	n := 0
	for _, d := range m.Devs {
		if d.Block != "" {
			dir := fmt.Sprintf("%s/nvme/nvme%d/%s", d.path(), n, d.Block)
			t.link("sys/block/"+d.Block, dir)
			t.num(dir+"/size", int64(m.DisksGB[n])*1_000_000_000/512)
			t.num(dir+"/removable", 0)
			t.num(dir+"/ro", 0)
			t.num(dir+"/queue/rotational", 0)
			t.file(fmt.Sprintf("%s/nvme/nvme%d/model", d.path(), n), "Samsung SSD 990 PRO                     ")
			t.link(dir+"/device", fmt.Sprintf("%s/nvme/nvme%d", d.path(), n))
			n++
		}
		if d.Net != "" {
			dir := d.path() + "/net/" + d.Net
			t.link("sys/class/net/"+d.Net, dir)
			t.num(dir+"/speed", 10000)
			t.link(dir+"/device", d.path())
		}
	}
	t.mkdir("sys/class/net")
}
