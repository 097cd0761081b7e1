package facts

import (
	"regexp"
	"strings"
)

// dumpKind is what a text is: the output of one command, or one file of a host.
type dumpKind string

// Kinds that are read from "cmd/dumps/KIND/…".
const (
	dumpLspci      dumpKind = "lspci"
	dumpLspciTree  dumpKind = "lspci-tree"
	dumpSMIXML     dumpKind = "nvidia-smi-xml"
	dumpSMIText    dumpKind = "nvidia-smi-q"
	dumpSMITable   dumpKind = "nvidia-smi"
	dumpDMI        dumpKind = "dmidecode"
	dumpLscpu      dumpKind = "lscpu"
	dumpNumactl    dumpKind = "numactl"
	dumpGrub       dumpKind = "grub"
	dumpCollectEnv dumpKind = "collect-env"
	dumpCUDASample dumpKind = "cuda-sample"
	dumpFabric     dumpKind = "fabricmanager"
)

// Kinds that have a place of their own in a snapshot.
const (
	dumpTopo      dumpKind = "topo"
	dumpP2P       dumpKind = "p2p"
	dumpLog       dumpKind = "log"
	dumpCPUInfo   dumpKind = "cpuinfo"
	dumpMemInfo   dumpKind = "meminfo"
	dumpCmdline   dumpKind = "cmdline"
	dumpIOMem     dumpKind = "iomem"
	dumpParams    dumpKind = "params"
	dumpModules   dumpKind = "modules"
	dumpNVRM      dumpKind = "nvidia-version"
	dumpOSRelease dumpKind = "os-release"
	dumpNCCLTests dumpKind = "nccl-tests"
	dumpNCCLDebug dumpKind = "nccl-debug"
)

// Kinds that are known and not read.
const (
	dumpBandwidth dumpKind = "bandwidth-test"
	dumpNVLink    dumpKind = "nvlink"
	dumpBareACS   dumpKind = "acs"
)

// dumpType is one row of the table of kinds: how a file's name and how a text's first lines tell it, and where it goes.
type dumpType struct {
	kind   dumpKind
	name   *regexp.Regexp // of the file, in lower case, without folders; nil: none is usual
	head   *regexp.Regexp // of a line that only this kind begins with
	place  string         // path in a snapshot; "" for cmd/dumps
	indent bool           // the head may stand behind white space
	unread string         // why it is not read
}

// dumpTypes are all kinds. Names are tried in this order, heads too: the more special stands first.
var dumpTypes = []dumpType{
	{kind: dumpSMIXML, name: rx(`nvidia-smi.*\.xml$`), head: rx(`^(?:<\?xml version|<!DOCTYPE nvidia_smi_log|<nvidia_smi_log)`)},
	{kind: dumpNVLink, name: rx(`nvlink`), head: rx(`^GPU \d+: .*\(UUID: (?:GPU|MIG)-`), unread: "the states of NVLink; no check judges them"},
	{kind: dumpSMIText, name: rx(`nvidia-smi[-_ ]?q`), head: rx(`^(?:={6,}NVSMI LOG={6,}|GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$)`)},
	{kind: dumpTopo, name: rx(`topo[-_]m`), head: rx(`^\s*GPU0\s+(?:GPU1|CPU Affinity|NIC0|mlx\S+)\b`), place: "cmd/topo-m.txt", indent: true},
	{kind: dumpP2P, name: rx(`p2p[-_][rwnap]\b`), place: "cmd/p2p-r.txt"},
	{
		kind: dumpSMITable, name: rx(`^nvidia-smi\b`),
		head: rx(`^(?:\| NVIDIA-SMI |NVIDIA-SMI has failed|NVIDIA-SMI couldn't find|Failed to initialize NVML|No devices were found|Unable to determine the device handle)`),
	},
	{kind: dumpDMI, name: rx(`dmidecode|^dmi\b`), head: rx(`^(?:# dmidecode \d|Handle 0x[0-9A-Fa-f]+, DMI type \d+)`)},
	{kind: dumpLspciTree, name: rx(`lspci[-_ ]?t`), head: rx(`^-(?:\+-)?\[(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}\]-`)},
	{kind: dumpLspci, name: rx(`lspci`), head: rx(`^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:[A-Z3"]|[0-9a-f]{4}: [0-9a-f]{4}:)`)},
	{kind: dumpBareACS, name: rx(`^acs\b`), head: rx(`^\s*ACSCtl:`), indent: true, unread: "the words of ACS without the addresses they belong to: `sudo lspci -vvv` whole has both"},
	{kind: dumpLscpu, name: rx(`lscpu`), head: rx(`^(?:Architecture ?:|Architektur:|架构[：:])\s*(?:x86_64|aarch64|ppc64le)`)},
	{kind: dumpNumactl, name: rx(`numactl`), head: rx(`^available: \d+ nodes`)},
	{kind: dumpCPUInfo, name: rx(`cpuinfo`), head: rx(`^processor\s*: \d+$`), place: "proc/cpuinfo"},
	{kind: dumpMemInfo, name: rx(`meminfo`), head: rx(`^MemTotal:\s+\d+ kB`), place: "proc/meminfo"},
	{kind: dumpCmdline, name: rx(`cmdline`), head: rx(`^BOOT_IMAGE=\S+ `), place: "proc/cmdline"},
	{kind: dumpIOMem, name: rx(`iomem`), head: rx(`^[0-9a-f]{8,16}-[0-9a-f]{8,16} : \S`), place: "proc/iomem"},
	{kind: dumpParams, name: rx(`nvidia[-_]?params`), head: rx(`^ResmanDebugLevel: \d`), place: "proc/driver/nvidia/params"},
	{kind: dumpNVRM, head: rx(`^NVRM version: NVIDIA UNIX`), place: "proc/driver/nvidia/version"},
	{kind: dumpModules, name: rx(`^modules`), head: rx(`^[a-z0-9_]+ \d+ \d+ (?:-|[a-z0-9_,]+) Live 0x`), place: "proc/modules"},
	{kind: dumpOSRelease, name: rx(`os-release`), head: rx(`^PRETTY_NAME="`), place: "etc/os-release"},
	{kind: dumpGrub, name: rx(`grub`), head: rx(`^GRUB_(?:DEFAULT|CMDLINE_LINUX)`)},
	{kind: dumpCollectEnv, name: rx(`collect[-_]env`), head: rx(`^(?:Collecting environment information|PyTorch version\s*:)`)},
	{kind: dumpCUDASample, name: rx(`devicequery|p2pbandwidth`), head: rx(`^(?:deviceQuery Starting|.* Starting\.\.\.$|\s*CUDA Device Query \(|Detected \d+ CUDA Capable|\[P2P \(Peer-to-Peer\)|Device: \d+, .*pciBusID: )`)},
	{kind: dumpBandwidth, name: rx(`bandwidthtest`), head: rx(`^\[CUDA Bandwidth Test\]`), unread: "copy rates of CUDA's sample; no check judges them"},
	{kind: dumpFabric, name: rx(`fabric-?manager`), head: rx(`^\[[A-Z][a-z]{2} +\d+ \d{4} [\d:]+\] \[[A-Z]+\] \[tid \d+\]`)},
	{kind: dumpNCCLTests, name: rx(`all_?reduce|nccl[-_]tests?`), head: rx(`^# (?:nThread \d|nccl-tests version|\s*size\s+count\s+type)`), place: ProbeTextPath},
	{kind: dumpNCCLDebug, name: rx(`nccl`), head: rx(`^(?:\[\S+\] ?)?\S+:\d+:\d+ \[\d+\] NCCL (?:INFO|WARN)`), place: ProbeDebugPath},
	{
		kind: dumpLog, name: rx(`dmesg|kern|kmsg|journal|syslog|messages`), place: "cmd/dmesg.txt",
		head: rx(`^(?:<\d+>|[a-z]+ *:[a-z]+ *: ?|\d{4}-\d\d-\d\dT\S+ (?:std(?:out|err) [FP] )?)?(?:\[ *\+?\d+\.\d{4,}\] |\[\S+ \S+ +\d+ [\d:]{8} \d{4}\] |\[[A-Z][a-z]{2} *\d+ \d\d:\d\d\] |` +
			`\S.{0,30}?\d\d:\d\d:\d\d\S* (?:\S+ ){1,2}kernel: |\d+\.\d{6} \S+ kernel: |\d{4}-\d\d-\d\dT[\d:]+[,.]\d+[+-]\d\d:\d\d \S|\d+,\d+,\d+,[-c];|kernel: |NVRM: |-- (?:Logs begin|Journal begins|Boot ))`),
	},
}

func rx(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// commandKinds are what an echoed command line promises.
var commandKinds = []struct {
	command *regexp.Regexp
	kind    dumpKind
}{
	{rx(`\blspci\b.* -[a-z]*t`), dumpLspciTree},
	{rx(`\blspci\b`), dumpLspci},
	{rx(`\bnvidia-smi\b.* topo.* -p2p|\bnvidia-smi topo .*p2p`), dumpP2P},
	{rx(`\bnvidia-smi\b.* topo`), dumpTopo},
	{rx(`\bnvidia-smi\b.* nvlink`), dumpNVLink},
	{rx(`\bnvidia-smi\b.*(?: -x| --xml)`), dumpSMIXML},
	{rx(`\bnvidia-smi\b.*(?: -q\b| --query\b)`), dumpSMIText},
	{rx(`\bnvidia-smi$`), dumpSMITable},
	{rx(`\bdmidecode\b`), dumpDMI},
	{rx(`\b(?:dmesg|journalctl)\b`), dumpLog},
	{rx(`\blscpu\b`), dumpLscpu},
	{rx(`\bnumactl\b`), dumpNumactl},
	{rx(`/proc/cpuinfo`), dumpCPUInfo},
	{rx(`/proc/meminfo`), dumpMemInfo},
	{rx(`/proc/cmdline`), dumpCmdline},
	{rx(`/proc/iomem`), dumpIOMem},
	{rx(`/etc/default/grub`), dumpGrub},
}

// prompt is a shell's prompt with one of the commands whose output is read.
var prompt = regexp.MustCompile(`^(?:\([\w.-]+\) ?)?(?:\[?[\w.-]+@[\w.-]+[^$#%>]{0,80}|(?:PS )?[A-Za-z]:\\[^>]{0,200})?[$#%>] ?((?:sudo )?(?:/\S*/)?(?:lspci|nvidia-smi(?:\.exe)?|dmidecode|dmesg|journalctl|lscpu|numactl|cat)(?: .*)?)$`)

// kindByName is the kind that a file's name promises; false for none.
func kindByName(base string) (dumpType, bool) {
	base = strings.ToLower(base)
	for _, t := range dumpTypes {
		if t.name != nil && t.name.MatchString(base) {
			return t, true
		}
	}
	return dumpType{}, false
}

func kindOf(k dumpKind) dumpType {
	for _, t := range dumpTypes {
		if t.kind == k {
			return t
		}
	}
	return dumpType{kind: k}
}

// kindByCommand is the kind that an echoed command promises; "" for none.
func kindByCommand(command string) dumpKind {
	for _, c := range commandKinds {
		if c.command.MatchString(strings.TrimSpace(command)) {
			return c.kind
		}
	}
	return ""
}

// kindByLine is the kind that begins with this line; "" for none.
func kindByLine(line string) dumpKind {
	indented := line != "" && (line[0] == ' ' || line[0] == '\t')
	for _, t := range dumpTypes {
		if t.head != nil && (!indented || t.indent) && t.head.MatchString(line) {
			return t.kind
		}
	}
	return ""
}
