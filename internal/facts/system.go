package facts

import (
	"strconv"
	"strings"

	"github.com/jaypipes/ghw"
)

func readOS(b *builder) {
	h := b.host
	h.Name = First(b.str("proc/sys/kernel/hostname"), known(b.snap.Manifest.Hostname, "manifest:hostname"))
	h.OS.Kernel = b.str("proc/sys/kernel/osrelease")
	h.OS.Cmdline = b.str("proc/cmdline")
	h.OS.BootID = b.str("proc/sys/kernel/random/boot_id")
	if t, ok := b.text("etc/os-release"); ok {
		if v := shellValue(t, "PRETTY_NAME"); v != "" {
			h.OS.Distro = Of(v, "file:etc/os-release")
		}
	}
	if t, ok := b.text("cmd/uname.txt"); ok {
		for _, w := range strings.Fields(t) {
			if w == "x86_64" || w == "aarch64" || w == "ppc64le" {
				h.OS.Arch = Of(w, "cmd:uname -a")
			}
		}
	}
	if t, ok := b.text("proc/uptime"); ok {
		if f, err := strconv.ParseFloat(strings.Fields(t)[0], 64); err == nil && f >= 0 && f < 1e12 {
			h.OS.UptimeS = Of(int64(f), "file:proc/uptime")
		}
	}
	readShm(b)
	readBoot(b)
}

// readShm takes total and free space of /dev/shm from `df -k`.
func readShm(b *builder) {
	t, _ := b.text("cmd/df-shm.txt")
	for _, line := range strings.Split(t, "\n") {
		f := strings.Fields(line)
		if len(f) < 6 || f[len(f)-1] != "/dev/shm" {
			continue
		}
		total, err1 := strconv.ParseInt(f[len(f)-5], 10, 64)
		free, err2 := strconv.ParseInt(f[len(f)-3], 10, 64)
		if err1 == nil && err2 == nil {
			b.host.OS.ShmTotal = Of(total/1024, "cmd:df -k /dev/shm")
			b.host.OS.ShmFree = Of(free/1024, "cmd:df -k /dev/shm")
		}
	}
}

// readBoot tells UEFI from legacy boot by the presence of /sys/firmware/efi, once sysfs itself was seen.
func readBoot(b *builder) {
	_, sysfs := b.snap.Dirs["sys/firmware"]
	_, efi := b.snap.Dirs["sys/firmware/efi"]
	if it, ok := b.items["sys/firmware/efi"]; ok {
		sysfs, efi = true, it.Status == StatusOK
	}
	for _, name := range b.snap.Dirs["sys/firmware"] {
		efi = efi || name == "efi"
	}
	if sysfs || efi {
		b.host.Boot.UEFI = Of(efi, "sysfs:sys/firmware/efi")
	}
	for path, raw := range b.snap.Files {
		if strings.Contains(path, "efivars/SecureBoot-") && len(raw) >= 5 {
			b.host.Boot.SecureBoot = Of(raw[4] == 1, source(path))
		}
	}
}

// shellValue reads KEY=value or KEY="value" from an os-release style file.
func shellValue(text, key string) string {
	for _, line := range strings.Split(text, "\n") {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}

// readDMI reads the strings that every user may read; placeholders are absent.
func readDMI(b *builder) {
	h := b.host
	get := func(name, value string) Fact[string] { return known(realText(value), "sysfs:sys/class/dmi/id/"+name) }
	if v, err := ghw.BIOS(b.ghwOptions()...); err == nil {
		h.BIOS = BIOS{Vendor: get("bios_vendor", v.Vendor), Version: get("bios_version", v.Version), Date: get("bios_date", v.Date)}
	}
	if v, err := ghw.Baseboard(b.ghwOptions()...); err == nil {
		h.Board.Vendor, h.Board.Name, h.Board.Version = get("board_vendor", v.Vendor), get("board_name", v.Product), get("board_version", v.Version)
	}
	if v, err := ghw.Product(b.ghwOptions()...); err == nil {
		h.Board.SystemMaker, h.Board.Product = get("sys_vendor", v.Vendor), get("product_name", v.Name)
	}
	h.Board.ChassisType = b.number("sys/class/dmi/id/chassis_type")
	if !h.Board.Name.Known() && !h.Board.Product.Known() {
		b.gap(KindDMI, "%s", b.why("sys/class/dmi/id", "no DMI strings in the input"))
	}
}

// readCPU counts sockets and physical cores in /proc/cpuinfo: distinct physical ids, and distinct pairs of
// physical id and core id.
func readCPU(b *builder) {
	const path = "proc/cpuinfo"
	raw, ok := b.read(path)
	if !ok {
		b.gap(KindCPU, "%s", b.why(path, "no /proc/cpuinfo in the input"))
		return
	}
	var model, physical, core, cpu string
	b.packages = map[string]int{}
	sockets, cores, threads := map[string]bool{}, map[string]bool{}, 0
	for _, line := range strings.Split(string(raw)+"\n\n", "\n") {
		k, v, isPair := strings.Cut(line, ":")
		if !isPair {
			if physical != "" && core != "" {
				sockets[physical], cores[physical+"/"+core] = true, true
			}
			if n, err := strconv.Atoi(physical); err == nil {
				b.packages[cpu] = n
			}
			physical, core = "", ""
			continue
		}
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		switch k {
		case "processor":
			threads++
			cpu = v
		case "model name":
			model = v
		case "physical id":
			physical = v
		case "core id":
			core = v
		case "flags":
			if strings.Contains(" "+v+" ", " hypervisor ") {
				b.host.Hypervisor = Of(true, "file:"+path)
			}
		}
	}
	c := &b.host.CPU
	c.Model = known(model, "file:"+path)
	c.Threads = known(threads, "file:"+path)
	c.Sockets = known(len(sockets), "file:"+path)
	c.Cores = known(len(cores), "file:"+path)
	if t, ok := b.text("sys/devices/system/node/online"); ok {
		c.Nodes = known(countList(t), "sysfs:sys/devices/system/node/online")
	}
	c.LimitWatts = b.raplLimit()
}

// countList counts the members of a kernel list such as "0-3,8".
func countList(s string) int {
	n := 0
	for _, part := range strings.Split(strings.TrimSpace(s), ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			return 0
		}
		if !ranged {
			n++
			continue
		}
		z, err := strconv.Atoi(hi)
		if err != nil || z < a || z-a > 1<<16 {
			return 0
		}
		n += z - a + 1
	}
	return n
}

// raplLimit is the highest power limit of the first package's RAPL domain, watts.
func (b *builder) raplLimit() Fact[float64] {
	best := Fact[float64]{}
	for _, c := range []string{"0", "1"} {
		path := "sys/class/powercap/intel-rapl:0/constraint_" + c + "_power_limit_uw"
		if uw := b.number(path); uw.Known() && float64(uw.Value)/1e6 > best.Value && uw.Value < 2_000_000_000 {
			best = Of(float64(uw.Value)/1e6, source(path))
		}
	}
	return best
}

func readMemory(b *builder) {
	const path = "proc/meminfo"
	b.host.Memory.OnlineMiB = b.onlineMemory()
	if _, ok := b.text(path); !ok {
		b.gap(KindMemory, "%s", b.why(path, "no /proc/meminfo in the input"))
		return
	}
	info, err := ghw.Memory(b.ghwOptions()...)
	if err != nil || info.TotalUsableBytes <= 0 {
		b.gap(KindMemory, "/proc/meminfo holds no MemTotal")
		return
	}
	b.host.Memory.TotalMiB = Of(info.TotalUsableBytes>>20, "file:"+path)
}

// onlineMemory multiplies the number of online memory blocks by their size; close to what is installed, and
// readable by every user.
func (b *builder) onlineMemory() Fact[int64] {
	t, _ := b.text("cmd/memory-blocks.txt")
	var count, size int64
	for _, line := range strings.Split(t, "\n") {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		switch f[0] {
		case "online":
			count, _ = strconv.ParseInt(f[1], 10, 64)
		case "block_size_bytes":
			size, _ = strconv.ParseInt(f[1], 16, 64)
		}
	}
	if count > 0 && size > 0 {
		return Of(count*(size>>20), "sysfs:sys/devices/system/memory")
	}
	return Fact[int64]{}
}
