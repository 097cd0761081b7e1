package facts

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Unlimited stands for no limit in facts of [Limits].
const Unlimited = -1

// MasterPort is the port on which torch's processes meet unless MASTER_PORT says otherwise.
const MasterPort = 29500

// readLimits reads what a login's processes may do: locked memory, ports, and whether there is RDMA to need them.
func readLimits(b *builder) {
	l := &b.host.Limits
	b.readMemlock()
	if t := b.picked("usr/lib/systemd/", "etc/systemd/"); t != "" {
		l.MemlockService = systemdMemlock(t)
	}
	if t, ok := b.text("proc/sys/net/ipv4/ip_local_port_range"); ok {
		if f := strings.Fields(t); len(f) == 2 {
			low, err1 := strconv.Atoi(f[0])
			high, err2 := strconv.Atoi(f[1])
			if err1 == nil && err2 == nil && low > 0 && high >= low && high < 1<<16 {
				l.PortLow, l.PortHigh = Of(low, "file:proc/sys/net/ipv4/ip_local_port_range"), Of(high, "file:proc/sys/net/ipv4/ip_local_port_range")
			}
		}
	}
	if raw, ok := b.read("proc/sys/net/ipv4/ip_local_reserved_ports"); ok {
		l.Reserved = Of(strings.TrimSpace(string(raw)), "file:proc/sys/net/ipv4/ip_local_reserved_ports")
	}
	b.readPorts()
	if raw, ok := b.read("cmd/slurm-jobs.txt"); ok && b.items["cmd/slurm-jobs.txt"].RC == 0 {
		b.host.Software.SlurmJobs = Of(append([]string{}, strings.Fields(string(raw))...), "cmd:squeue")
	}
	if names, ok := b.snap.Dirs["sys/class/infiniband"]; ok {
		l.RDMA = Of(append([]string{}, names...), "sysfs:sys/class/infiniband")
	} else if it, ok := b.items["sys/class/infiniband"]; ok && it.Status == StatusAbsent {
		l.RDMA = Of([]string{}, "sysfs:sys/class/infiniband")
	}
}

var memlockLine = regexp.MustCompile(`(?m)^Max locked memory\s+(\d+|unlimited)\s+(\d+|unlimited)`)

// readMemlock prefers the limits of the login's own shell: what runs under sudo has root's.
func (b *builder) readMemlock() {
	for _, path := range []string{"cmd/login-limits.txt", "proc/self/limits"} {
		t, _ := b.text(path)
		m := memlockLine.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		b.host.Limits.Memlock, b.host.Limits.MemlockHard = Of(limitKiB(m[1], 1), source(path)), Of(limitKiB(m[2], 1), source(path))
		return
	}
	t, _ := b.text("cmd/ulimit.txt")
	for _, line := range strings.Split(t, "\n") {
		if v, ok := strings.CutPrefix(line, "memlock_kib "); ok && limitWord.MatchString(v) {
			b.host.Limits.Memlock = Of(limitKiB(v, 1024), "cmd:ulimit -l")
		}
	}
}

var limitWord = regexp.MustCompile(`^(\d{1,18}|unlimited)$`)

// limitKiB reads a limit that is counted in units of so many bytes.
func limitKiB(word string, unit int64) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n > (1<<62)/unit {
		return Unlimited
	}
	return n * unit / 1024
}

var systemdLimit = regexp.MustCompile(`(?m)^(?:[^:\n]*:)?\s*DefaultLimitMEMLOCK\s*=\s*([0-9]+[KMGT]?|infinity)\b`)

// systemdMemlock reads DefaultLimitMEMLOCK=SOFT[:HARD] of system.conf and its drop-ins: the last one wins. Plain
// numbers are bytes.
func systemdMemlock(text string) Fact[int64] {
	all := systemdLimit.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return Fact[int64]{}
	}
	word := all[len(all)-1][1]
	unit := int64(1)
	if i := strings.IndexByte("KMGT", word[len(word)-1]); i >= 0 {
		unit, word = 1<<(10*(i+1)), word[:len(word)-1]
	}
	return Of(limitKiB(word, unit), "file:etc/systemd/system.conf")
}

// readPorts takes cmd/ports.txt: "listen HEX" for each TCP socket in LISTEN, "used STATE" for a socket whose local
// port is 29500. Addresses are left on the host.
func (b *builder) readPorts() {
	t, ok := b.text("cmd/ports.txt")
	if it, seen := b.items["cmd/ports.txt"]; !ok && !(seen && it.Status == StatusOK) {
		return
	}
	set, busy := map[int]bool{}, false
	for _, line := range strings.Split(t, "\n") {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		switch n, err := strconv.ParseUint(f[1], 16, 16); {
		case f[0] == "listen" && err == nil:
			set[int(n)] = true
		case f[0] == "used":
			busy = true
		}
	}
	ports := make([]int, 0, len(set))
	for p := range set {
		ports = append(ports, p)
	}
	sort.Ints(ports)
	b.host.Limits.Listening = Of(ports, "file:proc/net/tcp")
	b.host.Limits.MasterBusy = Of(busy, "file:proc/net/tcp")
}
