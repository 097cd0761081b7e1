package facts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	queryCount  = regexp.MustCompile(`^Detected (\d+) CUDA Capable device`)
	queryDevice = regexp.MustCompile(`^Device (\d+): "(.*)"$`)
	queryCUDA   = regexp.MustCompile(`CUDA Driver Version / Runtime Version\s+(\d+\.\d+) / `)
	queryBus    = regexp.MustCompile(`Device PCI Domain ID / Bus ID / location ID:\s+(\d+) / (\d+) / (\d+)`)
	queryECC    = regexp.MustCompile(`Device has ECC support:\s+(Enabled|Disabled)`)
	queryPeer   = regexp.MustCompile(`Peer access from .* \(GPU(\d+)\) -> .* \(GPU(\d+)\) : (Yes|No)`)
	peerDevice  = regexp.MustCompile(`^Device: (\d+), (.*), pciBusID: ([0-9a-f]+), pciDeviceID: ([0-9a-f]+), pciDomainID:\s?([0-9a-f]+)`)
	peerAccess  = regexp.MustCompile(`^Device=(\d+) (CAN|CANNOT) Access Peer Device=(\d+)`)
)

// cudaSample is what NVIDIA's sample programs say of a host. Memory sizes are left out: CUDA counts less than the driver.
type cudaSample struct {
	driver Driver
	cards  []Card
	peers  []P2PPair
}

// parseCUDASample reads deviceQuery and p2pBandwidthLatencyTest. Bus numbers are decimal in the one and hexadecimal in
// the other. CUDA's own numbering of cards is not nvidia-smi's, so cards are known by address alone.
func parseCUDASample(d dumpFile) cudaSample {
	var out cudaSample
	bdf := map[int]string{}
	name, number := "", -1
	var ecc Fact[bool]
	place := func(n int, name, domain, bus, dev string, base int) {
		v := [3]int64{}
		for i, s := range []string{domain, bus, dev} {
			x, err := strconv.ParseInt(s, base, 32)
			if err != nil || x < 0 || x > 0xffff || i > 0 && x > 0xff {
				return
			}
			v[i] = x
		}
		if len(out.cards) >= maxCards {
			return
		}
		c := Card{Device: Device{BDF: fmt.Sprintf("%04x:%02x:%02x.0", v[0], v[1], v[2]), Class: "030000", Vendor: "10de"}}
		c.Name = smiText(d.src("Device"), strings.TrimPrefix(name, "NVIDIA "))
		c.ECC = ecc
		bdf[n] = c.BDF
		out.cards = append(out.cards, c)
	}
	pair := func(a, b string, can bool) {
		i, err1 := strconv.Atoi(a)
		j, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil || bdf[i] == "" || bdf[j] == "" || len(out.peers) > maxCards*maxCards {
			return
		}
		code := map[bool]string{true: "OK", false: "NS"}[can]
		out.peers = append(out.peers, P2PPair{A: bdf[i], B: bdf[j], Op: "r", Code: code, Source: d.src("peer access")})
	}
	for _, line := range d.lines() {
		if m := queryCount.FindStringSubmatch(line); m != nil {
			out.driver.Attached = lspciInt(m[1], 10, d.src("Detected"))
			out.driver.Loaded = Of(true, d.src("Detected"))
		} else if m := queryDevice.FindStringSubmatch(line); m != nil {
			number, _ = strconv.Atoi(m[1])
			name, ecc = m[2], Fact[bool]{}
		} else if m := queryCUDA.FindStringSubmatch(line); m != nil {
			out.driver.CUDA = Of(m[1], d.src("CUDA Driver Version"))
		} else if m := queryECC.FindStringSubmatch(line); m != nil {
			ecc = Of(m[1] == "Enabled", d.src("ECC support"))
		} else if m := queryBus.FindStringSubmatch(line); m != nil && number >= 0 {
			place(number, name, m[1], m[2], m[3], 10)
		} else if m := queryPeer.FindStringSubmatch(line); m != nil {
			pair(m[1], m[2], m[3] == "Yes")
		} else if m := peerDevice.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			place(n, m[2], m[5], m[3], m[4], 16)
		} else if m := peerAccess.FindStringSubmatch(line); m != nil {
			pair(m[1], m[3], m[2] == "CAN")
		}
	}
	return out
}

// readCUDASamples adds cards and peer access. What CUDA lists may be less than what the driver knows
// (CUDA_VISIBLE_DEVICES), so the count stands only where no other source has one.
func readCUDASamples(b *builder) {
	for _, d := range b.dumps(dumpCUDASample) {
		s := parseCUDASample(d)
		b.host.Driver.Attached = First(b.host.Driver.Attached, s.driver.Attached)
		s.driver.Attached = Fact[int]{}
		b.merge("driver", &b.host.Driver, &s.driver)
		for _, c := range s.cards {
			b.mergeCard(c)
		}
		b.sortCards()
		if len(b.host.P2P) == 0 && len(s.peers) > 0 {
			b.host.P2P = s.peers
			b.filled(KindP2P)
		}
	}
}
