package facts

import (
	"bytes"
	"regexp"
	"strings"
)

// WhatWorks is what to give instead of an input that cannot be read.
const WhatWorks = "what works: a snapshot (preflight collect), nvidia-bug-report.log.gz, or the output of lspci -vvv, nvidia-smi -q (or -q -x), " +
	"nvidia-smi topo -m, dmidecode, dmesg, lscpu, /proc/cpuinfo, /proc/meminfo, all_reduce_perf"

// magics are the first bytes of files that people give by mistake.
var magics = []struct{ magic, what string }{
	{"\x89PNG", "an image (PNG): text is needed, not a screenshot"},
	{"\xff\xd8\xff", "an image (JPEG): text is needed, not a screenshot"},
	{"GIF8", "an image (GIF): text is needed, not a screenshot"},
	{"RIFF", "an image or a video: text is needed"},
	{"%PDF", "a PDF document"},
	{"PK\x03\x04", "a zip archive: unpack it first"},
	{"\x7fELF", "a program"},
	{"MZ", "a Windows program"},
	{"\xfd7zXZ", "an xz archive: unpack it first"},
	{"\x28\xb5\x2f\xfd", "a zstd archive: unpack it first"},
	{"BZh", "a bzip2 archive: unpack it first"},
	{"7z\xbc\xaf", "a 7z archive: unpack it first"},
	{"SQLite format 3", "a database"},
}

// LooksBinary names what is no text; "" for text, which UTF-16 is as well.
func LooksBinary(raw []byte) string {
	for _, m := range magics {
		if bytes.HasPrefix(raw, []byte(m.magic)) {
			return m.what
		}
	}
	if bytes.HasPrefix(raw, []byte{0xff, 0xfe}) || bytes.HasPrefix(raw, []byte{0xfe, 0xff}) || bareUTF16(raw) != nil {
		return ""
	}
	first := raw[:min(len(raw), 64<<10)]
	zero, odd := bytes.Count(first, []byte{0}), 0
	for _, c := range first {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b && c != '\b' && c != '\f' {
			odd++
		}
	}
	if zero > len(first)/100+1 || odd > len(first)/10 {
		return "binary data"
	}
	return ""
}

var (
	looksJSON = regexp.MustCompile(`^\s*[\[{]\s*["\[{\]}]`)
	looksHTML = regexp.MustCompile(`(?i)^\s*<(?:!doctype html|html|head|body|div)`)
	looksXML  = regexp.MustCompile(`^\s*<\?xml|^\s*<[a-z_]+[ >]`)
)

// foreign names text of a form that no dump has; "" for none.
func foreign(raw []byte) string {
	first := raw[:min(len(raw), 4096)]
	switch {
	case bytes.Contains(first, []byte(`"preflight/report/`)):
		return "a report of preflight: give the snapshot or the dumps that it was made of"
	case looksHTML.Match(first):
		return "a web page (HTML): save the text of the output itself"
	case looksJSON.Match(first):
		return "JSON"
	}
	return ""
}

// looksText names what a text looks like that is no dump.
func looksText(raw []byte) string {
	if what := foreign(raw); what != "" {
		return what
	}
	first := string(raw[:min(len(raw), 4096)])
	lines := strings.Split(strings.TrimSpace(first), "\n")
	switch {
	case strings.TrimSpace(first) == "":
		return "nothing: it is empty"
	case looksXML.MatchString(first):
		return "XML, but not that of nvidia-smi -q -x"
	case strings.HasPrefix(first, "#!"):
		return "a script"
	case strings.Contains(first, `rig "`) && strings.Contains(first, "{"):
		return "an inventory: give it with -i"
	case len(lines) > 2 && every(lines, func(l string) bool { return strings.Count(l, ",") >= 2 }):
		return "CSV: the long form of nvidia-smi (-q) says more"
	case len(lines) > 2 && most(lines, logLike.MatchString):
		return "a log of something else than the kernel"
	}
	return "text that holds no output it knows"
}

var logLike = regexp.MustCompile(`^\[?(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d)|\b(?:INFO|WARN(?:ING)?|ERROR|DEBUG)\b`)
