package checks

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"preflight/internal/facts"
)

// ram.channels: does every memory channel of every processor hold a module, all alike?
//
//	every channel filled, equal sizes and speeds          pass
//	a channel without a module                            warn
//	fewer modules than channels, names tell no channel    warn (that many channels at most)
//	channels filled unequally, or modules of two speeds   warn
//	processor unknown, or names tell no channel           unknown
//
// Cards fetch what they train on from RAM, and without P2P they also talk through it: half of the channels is half of
// that bandwidth. How many channels a processor has: the catalogue. Which channel a module is in: its locator.
//
// Trap: every board maker names sockets in its own way, and some names ("DIMM 5", "BANK 2", Dell's "A1") count sockets
// and no channels: then only the number of modules is judged.
var ramChannels = Check{ID: "ram.channels", Title: "memory channels", Metal: true, Decide: decideChannels}

func decideChannels(s Subject) []Finding {
	filled := filledDIMMs(s.Host)
	if len(filled) == 0 {
		why := firstOf(s.Host.Gaps[facts.KindSMBIOS], "no list of memory modules in the input")
		how := howToKnow[facts.KindSMBIOS]
		if strings.HasSuffix(why, "input") { // saved input: root on the host is no help now
			how = "give dmidecode of root, or a snapshot that root took"
		}
		return []Finding{unknown(rigSubject, "%s", why).knownBy(how)}
	}
	perSocket, from := channelsOf(s)
	if perSocket == 0 {
		return []Finding{unknown(rigSubject, "how many memory channels this processor has is not known").because(ev(s.Host.CPU.Model)).
			knownBy("compare with the maker's page of the processor")}
	}
	want := perSocket * max(1, s.Host.CPU.Sockets.Or(1))
	evidence := []Evidence{evs("smbios:type17", describeDIMMs(filled)), from}
	channels, named := groupChannels(filled, perSocket, s.Host.CPU.Sockets.Or(1))
	expected := fmt.Sprintf("%d channels", want)
	switch {
	case !named && len(filled) < want:
		return []Finding{warn(rigSubject, "%d modules for %d memory channels: at least %d stay empty", len(filled), want, want-len(filled)).
			saw(fmt.Sprintf("%d modules", len(filled)), expected).because(evidence...).noting("the board's names do not tell which").fix("ram.channels/empty", "used", fmt.Sprint(len(filled)), "channels", fmt.Sprint(want))}
	case !named:
		return []Finding{unknown(rigSubject, "the board's names of its sockets do not tell the channel").saw(fmt.Sprintf("%d modules", len(filled)), expected).
			because(evidence...).knownBy("look into the board's manual which sockets share a channel")}
	case len(channels) < want:
		return []Finding{warn(rigSubject, "%d of %d memory channels hold a module", len(channels), want).saw(fmt.Sprintf("%d channels", len(channels)), expected).
			because(evidence...).noting("filled: %s", channelNames(channels)).fix("ram.channels/empty", "used", fmt.Sprint(len(channels)), "channels", fmt.Sprint(want))}
	}
	f := pass(rigSubject, "all %d memory channels hold modules", want).saw(fmt.Sprintf("%d channels", len(channels)), expected).because(evidence...)
	if why := unequal(channels, filled); why != "" {
		f = warn(rigSubject, "all %d memory channels hold modules, but unequally: %s", want, why).saw(why, "equal").because(evidence...).fix("ram.channels/unequal")
	}
	return []Finding{f}
}

func filledDIMMs(h *facts.Host) []facts.DIMM {
	var out []facts.DIMM
	for _, d := range h.Memory.DIMMs {
		if d.SizeMiB > 0 {
			out = append(out, d)
		}
	}
	return out
}

// channelsOf is the number of memory channels of one processor, 0 when the catalogue does not tell.
func channelsOf(s Subject) (int, Evidence) {
	name := s.Host.CPU.Model.Value
	if m, ok := s.Cat.CPUModel(name); ok && m.Channels > 0 {
		return m.Channels, evs("catalogue:"+m.Name, fmt.Sprintf("%d channels", m.Channels))
	}
	if c, ok := s.Cat.CPU(name); ok && c.Channels > 0 {
		return c.Channels, evs("catalogue:"+c.Family, fmt.Sprintf("%d channels", c.Channels))
	}
	return 0, Evidence{}
}

// channelPatterns find socket and channel in a module's locator, or in its bank: the first that matches wins. Group
// "s" is the socket (may be absent), "c" the channel, "k" a memory controller or node within the socket.
var channelPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\bController(?P<k>\d+)-Channel(?P<c>[A-Z])\b`),                          // Intel since 12th gen: two controllers of a channel each
	regexp.MustCompile(`(?i)\bP(?:ROC|ROCESSOR)?\s?(?P<s>\d+)[_ -]?CHANNEL[_ -]?(?P<c>[A-P])\b`),    // P0 CHANNEL A
	regexp.MustCompile(`(?i)^(?:CPU|P)[_ ]?(?P<s>\d+)[_ -]+(?:CH|DIMM)[_ -]?(?P<c>[A-P])\d{0,2}\b`), // P1-DIMMA1, CPU1_DIMM_A1
	regexp.MustCompile(`(?i)^DIMM[_ -]?(?:P|CPU)(?P<s>\d+)[_ -](?P<c>[A-P])\d?\b`),                  // DIMM_P1_I0
	regexp.MustCompile(`(?i)^(?:CHANNEL|CH)[_ -]?(?P<c>[A-P])\b`),                                   // ChannelA-DIMM0
	regexp.MustCompile(`(?i)^DIMM[_ -]?(?P<c>[A-P])\d?$`),                                           // DIMM_A1, DIMMA2
	regexp.MustCompile(`(?i)^P(?P<s>\d+)_Node(?P<k>\d+)_Channel(?P<c>\d+)_Dimm\d+$`),                // P0_Node0_Channel0_Dimm0
	regexp.MustCompile(`(?i)^(?:NODE|CPU)\s?(?P<s>\d+)[_ -]+CHANNEL\s?(?P<c>\d+|[A-P])\b`),
}

// channelOf names a module's channel, or nothing when no pattern fits.
func channelOf(d facts.DIMM) string {
	for _, re := range channelPatterns {
		for _, text := range []string{strings.TrimSpace(d.Locator), strings.TrimSpace(d.Bank)} {
			m := re.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			part := func(name string) string {
				if i := re.SubexpIndex(name); i >= 0 {
					return strings.ToUpper(m[i])
				}
				return ""
			}
			var name []string
			for _, p := range []struct{ word, value string }{{"CPU", part("s")}, {"MC", part("k")}, {"", part("c")}} {
				if p.value != "" {
					name = append(name, p.word+p.value)
				}
			}
			return strings.Join(name, " ")
		}
	}
	return ""
}

// groupChannels sums sizes by channel, MiB; false when a module's channel is not told. Where every module has the same
// name ("A") on several processors, the names do not tell either.
func groupChannels(filled []facts.DIMM, perSocket, sockets int) (map[string]int64, bool) {
	out := map[string]int64{}
	bySocket := false
	for _, d := range filled {
		name := channelOf(d)
		if name == "" {
			return nil, false
		}
		bySocket = bySocket || strings.HasPrefix(name, "CPU")
		out[name] += d.SizeMiB
	}
	return out, bySocket || sockets < 2 || len(out) > perSocket
}

func channelNames(channels map[string]int64) string {
	names := make([]string, 0, len(channels))
	for n := range channels {
		names = append(names, n)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

// unequal says how channels or modules differ; "" when they do not.
func unequal(channels map[string]int64, filled []facts.DIMM) string {
	var sizes, speeds []int64
	for _, n := range channels {
		sizes = append(sizes, n)
	}
	for _, d := range filled {
		if d.MTs > 0 {
			speeds = append(speeds, int64(d.MTs))
		}
	}
	low, high := span(sizes)
	if low != high {
		return fmt.Sprintf("%.0f to %.0f GiB a channel", gib(low), gib(high))
	}
	if low, high = span(speeds); low != high {
		return fmt.Sprintf("%d and %d MT/s", low, high)
	}
	return ""
}

func span(values []int64) (low, high int64) {
	for i, v := range values {
		if i == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// describeDIMMs is "8 × 32 GiB DDR4-3200", kinds in a stable order.
func describeDIMMs(filled []facts.DIMM) string {
	count := map[string]int{}
	for _, d := range filled {
		kind := strings.TrimSpace(fmt.Sprintf("%.0f GiB %s", gib(d.SizeMiB), d.Kind))
		if d.MTs > 0 {
			kind += fmt.Sprintf("-%d", d.MTs)
		}
		count[kind]++
	}
	var parts []string
	for kind, n := range count {
		parts = append(parts, fmt.Sprintf("%d × %s", n, kind))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}
