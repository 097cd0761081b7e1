package facts

import (
	"regexp"
	"strconv"
	"strings"
)

// A file of /var/log, and a journal that was not asked for one boot, hold several boots. What an earlier one said is no
// fact of the machine as it is: a card that was lost came back, or is missing now as well.

var bootMark = regexp.MustCompile(`^-- (?:Reboot|Boot [0-9a-f]{32}) --|(?:\] |kernel: |;)Linux version \d`)

// bootBack is by how much the kernel's clock has to go back, seconds: lines of several processors may be out of order.
const bootBack = 5

// driverLoads is the first line of NVIDIA's module.
const driverLoads = "NVRM: loading NVIDIA UNIX"

// thisBoot is where the last boot of a log begins: behind the journal's own mark, at the kernel's first line, or, in
// lines that carry a date as well, where the kernel's clock goes back. In dated lines without the kernel's clock, which
// were filtered for the driver's words, the driver's first line stands for it.
func thisBoot(lines []string) int {
	at, last, stamped := 0, 0, false
	for n, line := range lines {
		line = line[:min(len(line), lineLimit)]
		if marksBoot(line) {
			at, last = n, 0
			continue
		}
		if sec, ok := datedStamp(line); ok {
			if stamped = true; sec < last-bootBack {
				at = n
			}
			last = sec
		}
	}
	if stamped {
		return at
	}
	for n := len(lines) - 1; n > at; n-- {
		line := lines[n][:min(len(lines[n]), lineLimit)]
		if strings.Contains(line, driverLoads) && strings.Contains(line, " kernel: ") {
			return n
		}
	}
	return at
}

func marksBoot(line string) bool {
	return (strings.HasPrefix(line, "-- ") || strings.Contains(line, "Linux version ")) && bootMark.MatchString(line)
}

// stampAt is how far into a line the kernel's clock may stand, behind the date and the host's name.
const stampAt = 120

// datedStamp is the kernel's clock, seconds, of a line that has something in front of it: "Nov 19 10:00:00 rig kernel:
// [   12.345678] …". A level ("<6>") is no date. It is written out because a log has a million lines.
func datedStamp(line string) (int, bool) {
	i := strings.IndexByte(line[:min(len(line), stampAt)], '[')
	if i <= 0 || strings.Trim(line[:i], "<0123456789> ") == "" {
		return 0, false
	}
	inner, _, ok := strings.Cut(line[i+1:], "]")
	sec, micro, dotted := strings.Cut(strings.TrimLeft(inner, " "), ".")
	if !ok || !dotted || len(micro) != 6 {
		return 0, false
	}
	n, err := strconv.Atoi(sec)
	return n, err == nil
}

var plainStamp = regexp.MustCompile(`^\s*(?:<\d+>)?\[\s*(\d{1,10})\.\d{6}\]`)

// firstStamp is the kernel's clock at the first line of a log that has one in front: dmesg, journalctl -o short-monotonic.
func firstStamp(text, src string) Fact[int64] {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		m := plainStamp.FindStringSubmatch(line[:min(len(line), lineLimit)])
		if m == nil {
			return Fact[int64]{}
		}
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return Of(n, src)
	}
	return Fact[int64]{}
}

// lastBoot blanks the lines of earlier boots, so that those that stay keep their numbers, and returns those lines too.
func lastBoot(text string) (last string, earlier []string) {
	lines := strings.Split(text, "\n")
	at := thisBoot(lines)
	if at == 0 {
		return text, nil
	}
	return strings.Repeat("\n", at) + strings.Join(lines[at:], "\n"), lines[:at]
}

// logLines is from how many lines on a log that does not begin at boot counts as what the kernel still had, and not as
// some lines that somebody picked.
const logLines = 200

// wholeLog says whether the absence of a line means something.
func wholeLog(text string) bool {
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		line = line[:min(len(line), lineLimit)]
		if n++; n >= logLines || marksBoot(line) || strings.Contains(line, driverLoads) {
			return true
		}
	}
	return false
}

// earlierBoots keeps what earlier boots said of cards, apart from what this one says.
func (b *builder) earlierBoots(lines []string, src string) {
	seen := map[string]bool{}
	for _, ev := range b.host.Log.Earlier {
		seen[eventKey(ev)] = true
	}
	for n, line := range lines {
		ev, ok := logEvent(line[:min(len(line), lineLimit)])
		if !ok || ev.Kind != "xid" && ev.Kind != "off-bus" || seen[eventKey(ev)] || len(seen) >= logLimit {
			continue
		}
		seen[eventKey(ev)] = true
		ev.Source = src + ":" + strconv.Itoa(n+1)
		b.host.Log.Earlier = append(b.host.Log.Earlier, ev)
	}
}

// eventKey is what two events have in common that say the same of the same device.
func eventKey(ev LogEvent) string { return ev.Kind + ev.BDF + strconv.Itoa(ev.Code) }
