package facts

import (
	"regexp"
	"strconv"
	"strings"
)

// A file of /var/log, and a journal that was not asked for one boot, hold several boots. What an earlier one said is no
// fact of the machine as it is: a card that was lost came back, or is missing now as well.

var (
	bootMark  = regexp.MustCompile(`^-- (?:Reboot|Boot [0-9a-f]{32}) --|(?:\] |kernel: |;)Linux version \d`)
	bootStamp = regexp.MustCompile(`^(.*?)\[ *(\d+)\.\d{6}\]`)
	bootLoad  = regexp.MustCompile(` kernel: .*NVRM: loading NVIDIA UNIX`)
)

// bootBack is by how much the kernel's clock has to go back, seconds: lines of several processors may be out of order.
const bootBack = 5

// thisBoot is where the last boot of a log begins: behind the journal's own mark, at the kernel's first line, or, in
// lines that carry a date as well, where the kernel's clock goes back. In dated lines without the kernel's clock, which
// were filtered for the driver's words, the driver's first line stands for it.
func thisBoot(lines []string) int {
	at, last, stamped := 0, 0, false
	for n, line := range lines {
		line = line[:min(len(line), lineLimit)]
		if bootMark.MatchString(line) {
			at, last = n, 0
			continue
		}
		m := bootStamp.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		sec, err := strconv.Atoi(m[2])
		dated := len(strings.Trim(m[1], "<0123456789> ")) > 0
		if err == nil && dated {
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
		if line := lines[n]; bootLoad.MatchString(line[:min(len(line), lineLimit)]) {
			return n
		}
	}
	return at
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
		if n++; n >= logLines || bootMark.MatchString(line) || strings.Contains(line, "NVRM: loading NVIDIA UNIX") {
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
