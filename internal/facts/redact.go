package facts

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// gpuIDsPath holds, beside a redacted snapshot, the identity of each card: lines "BDF hash" (see [HashUUID]).
const gpuIDsPath = "cmd/gpu-ids.txt"

// Redact blanks serial numbers, UUIDs, MAC addresses and passwords in URLs, each at its own length, unless the
// manifest says that serials are kept. Before that it writes down each card's hash, so that a live run, the saved
// snapshot and a later one name a card alike. Redacting twice changes nothing.
func Redact(s *Snapshot) {
	noteCardIDs(s)
	if s.Manifest.Serials {
		return
	}
	for path, raw := range s.Files {
		switch {
		case path == gpuIDsPath || strings.HasPrefix(path, "sys/firmware/efi/"):
		case path == "proc/sys/kernel/random/boot_id": // random for each boot; tells one boot from the next
		case path == "sys/firmware/dmi/tables/DMI":
			s.Files[path] = redactSMBIOS(raw)
		case strings.HasPrefix(path, pciDevices) && strings.HasSuffix(path, "/config"):
			s.Files[path] = redactConfig(raw)
		case holdsText(path):
			s.Files[path] = redactText(raw)
		}
	}
	for i := range s.Manifest.Items {
		it := &s.Manifest.Items[i]
		it.Detail = string(redactText([]byte(it.Detail)))
	}
}

// holdsText says where names of things can stand: output of commands and probes, and a few files.
func holdsText(path string) bool {
	for _, p := range []string{"cmd/", "probe/", "etc/", "proc/cmdline", "proc/driver/", "proc/self/mounts", "proc/1/"} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

var (
	smiIdentity  = regexp.MustCompile(`(?s)<gpu id="([0-9A-Fa-f:.]+)">.*?<uuid>\s*(GPU-[0-9a-fA-F-]{36})\s*</uuid>`)
	procIdentity = regexp.MustCompile(`GPU UUID:\s*(GPU-[0-9a-fA-F-]{36})`)
)

// noteCardIDs takes UUIDs from nvidia-smi, else from the driver's own list, which answers when nvidia-smi hangs.
func noteCardIDs(s *Snapshot) {
	if _, done := s.Files[gpuIDsPath]; done {
		return
	}
	ids := map[string]string{}
	for path, raw := range s.Files {
		rest, ok := strings.CutPrefix(path, "proc/driver/nvidia/gpus/")
		bdf, isInfo := strings.CutSuffix(rest, "/information")
		if m := procIdentity.FindSubmatch(raw); ok && isInfo && m != nil {
			ids[smiBDF(bdf)] = HashUUID(string(m[1]))
		}
	}
	for _, m := range smiIdentity.FindAllSubmatch(s.Files["cmd/nvidia-smi-q.xml"], -1) {
		ids[smiBDF(string(m[1]))] = HashUUID(string(m[2]))
	}
	if len(ids) == 0 {
		return
	}
	lines := make([]string, 0, len(ids))
	for bdf, id := range ids {
		lines = append(lines, fmt.Sprintf("%s %s\n", bdf, id))
	}
	sort.Strings(lines)
	s.Files[gpuIDsPath] = []byte(strings.Join(lines, ""))
}

// secrets are what names a thing in text, beside UUIDs and MAC addresses, which are known by their shape. Each rule is
// tried only on lines that hold one of its needles: a snapshot has megabytes of text, and regular expressions are slow.
// The group "v" is blanked.
var secrets = []struct {
	needles []string
	re      *regexp.Regexp
}{
	{
		[]string{"<serial", "<pdi", "<chassis_serial", "<gpu_fabric_guid", "<host_id"},
		regexp.MustCompile(`<(?:serial|pdi|chassis_serial_number|gpu_fabric_guid|host_id)>\s*(?P<v>[^<\s][^<]*?)\s*</`),
	},
	{
		[]string{"erial", "ERIAL", "sset"},
		regexp.MustCompile(`(?i)\b(?:serial ?number|serial|asset tag)\s*[:=][ \t]*(?P<v>[^\s,;][^\r\n,;]*)`),
	},
	{[]string{"Device Serial"}, regexp.MustCompile(`Device Serial Number (?P<v>[0-9a-fA-F-]+)`)},
	{[]string{"/home/"}, regexp.MustCompile(`/home/(?P<v>[^/\s:'"]+)`)}, // names of people
	{[]string{"://"}, regexp.MustCompile(`[a-z]://(?P<v>[^/@\s"']+)@`)},
}

// neutral are values that identify nothing; blanking them would only hide that there is nothing.
var neutral = regexp.MustCompile(`(?i)^(n/a|none|0|\[?unknown error\]?|\[?gpu is lost\]?|not specified|0x0+|err!)$`)

func redactText(raw []byte) []byte {
	out := append([]byte(nil), raw...)
	blankShapes(out)
	rules := secrets[:0:0] // most files hold the needles of one or two
	for _, rule := range secrets {
		if holdsAny(out, rule.needles) {
			rules = append(rules, rule)
		}
	}
	if len(rules) == 0 {
		return out
	}
	for rest := out; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		for _, rule := range rules {
			if !holdsAny(line, rule.needles) {
				continue
			}
			v := rule.re.SubexpIndex("v")
			for _, m := range rule.re.FindAllSubmatchIndex(line, -1) {
				if value := line[m[2*v]:m[2*v+1]]; !neutral.Match(value) {
					blank(value)
				}
			}
		}
	}
	return out
}

func holdsAny(line []byte, needles []string) bool {
	for _, n := range needles {
		if bytes.Contains(line, []byte(n)) {
			return true
		}
	}
	return false
}

// The shapes of a UUID and of a MAC address: x is a hex digit.
const (
	uuidShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	macShape  = "xx:xx:xx:xx:xx:xx"
)

// blankShapes blanks UUIDs and MAC addresses that stand by themselves: no further hex digit touches them. A BDF has
// too few groups to look like a MAC address.
func blankShapes(b []byte) {
	for _, shape := range []string{uuidShape, macShape} {
		first := strings.Trim(shape, "x")[0] // the separator, which is rarer than a hex digit
		before := strings.IndexByte(shape, first)
		for from := 0; from < len(b); {
			at := bytes.IndexByte(b[from:], first)
			if at < 0 {
				break
			}
			from += at + 1
			if i := from - 1 - before; i >= 0 && (i == 0 || !isHex(b[i-1])) && fits(b[i:], shape) {
				blank(b[i : i+len(shape)])
				from = i + len(shape)
			}
		}
	}
}

func fits(b []byte, shape string) bool {
	if len(b) < len(shape) || len(b) > len(shape) && isHex(b[len(shape)]) {
		return false
	}
	for i := range len(shape) {
		if hex := isHex(b[i]); shape[i] == 'x' && !hex || shape[i] != 'x' && b[i] != shape[i] {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// blank overwrites letters and digits, so that length and shape stay.
func blank(b []byte) {
	for i, c := range b {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b[i] = 'x'
		}
	}
}

// smbiosSecrets lists, by record type, the offsets of string indexes that hold serial numbers and asset tags
// (DMTF DSP0134: system, baseboard, chassis, processor, memory device, battery, power supply).
var smbiosSecrets = map[byte][]int{
	1: {0x07}, 2: {0x07, 0x08}, 3: {0x07, 0x08}, 4: {0x20, 0x21}, 17: {0x18, 0x19}, 22: {0x07}, 39: {0x08, 0x09},
}

const (
	smbiosSystem = 1
	smbiosOEM    = 11  // free strings; some makers put service tags there
	smbiosVendor = 128 // and above: makers' own records, with MACs and serials among them
)

// redactSMBIOS walks the table as parseSMBIOS does. From where it breaks on, everything is blanked.
func redactSMBIOS(table []byte) []byte {
	out := append([]byte(nil), table...)
	at := 0
	for at+4 <= len(out) {
		length := int(out[at+1])
		if length < 4 || at+length > len(out) {
			clear(out[at:])
			return out
		}
		end := at + length
		var texts [][]byte
		for end < len(out) && out[end] != 0 {
			stop := end
			for stop < len(out) && out[stop] != 0 {
				stop++
			}
			texts = append(texts, out[end:stop])
			end = stop + 1
		}
		if len(texts) == 0 {
			end++
		}
		redactRecord(out[at:at+length], texts)
		at = end + 1
	}
	return out
}

func redactRecord(rec []byte, texts [][]byte) {
	kind := rec[0]
	if kind >= smbiosVendor || kind == smbiosOEM {
		if kind >= smbiosVendor {
			clear(rec[4:])
		}
		for _, t := range texts {
			blank(t)
		}
		return
	}
	if kind == smbiosSystem && len(rec) >= 0x18 {
		clear(rec[0x08:0x18]) // UUID
	}
	for _, off := range smbiosSecrets[kind] {
		if off >= len(rec) {
			continue
		}
		if i := int(rec[off]); i > 0 && i <= len(texts) && realText(string(texts[i-1])) != "" {
			blank(texts[i-1])
		}
	}
}

const extSerial = 0x0003

// redactConfig clears the Device Serial Number capability: on network cards and switches it is a MAC address.
func redactConfig(raw []byte) []byte {
	at := extStart
	for hop := 0; hop < maxHops && at >= extStart && at+12 <= len(raw); hop++ {
		h := binary.LittleEndian.Uint32(raw[at:])
		if h == 0 || h == 0xffffffff {
			break
		}
		if h&0xffff == extSerial {
			raw = append([]byte(nil), raw...)
			clear(raw[at+4 : at+12])
		}
		at = int(h >> 20 &^ 3)
	}
	return raw
}
