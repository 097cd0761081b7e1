package checks

import (
	"fmt"
	"sort"
	"strings"

	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// Subject is everything that a check may look at.
type Subject struct {
	Rig    *inventory.Rig // what was declared; never nil, but empty when nothing was
	Host   *facts.Host
	Policy Policy
	Cat    *catalog.Catalog
	Cards  []facts.Card // the cards that train; a small display card beside them is not among them
	Others []facts.Card // NVIDIA cards left out of Cards

	functions map[string]facts.Device // the host's PCI functions by address
}

// Check is one rule of the catalogue.
type Check struct {
	ID     string                  // "pcie.width"
	Title  string                  // a few words, for headings
	Metal  bool                    // about the machine beneath: unknown in a guest or container
	Needs  []facts.Kind            // without one of these the finding is unknown, with the reason
	Decide func(Subject) []Finding // pure
}

// All is the catalogue, in the order of reports: causes before what they cause.
func All() []Check {
	return []Check{
		gpuCount, gpuModel, gpuGenuine, driverLoaded, driverVersion, driverPersistence,
		gpuHealth, gpuThrottle, gpuPowerLimit,
		above4G, resizableBAR, firmwareIOMMU, firmwareBootMode,
		pcieErrors, pcieWidth, pcieSpeed, pcieUplink, pcieACS,
		topologyP2P, topologyNUMA,
		cpuLanes, cpuCores, ramPerCard, ramChannels, storageCapacity,
		powerPSU, powerMains, slotSpacing,
		runtimeTorch, containerRuntime, containerShm, hostMemlock, hostPorts,
		linkBandwidth,
		ncclAllReduce,
		burnThermal, burnPower, burnMemory,
		ddpScaling,
		clusterConsistency,
	}
}

// IDs lists the ids of the catalogue.
func IDs() []string {
	var ids []string
	for _, c := range All() {
		ids = append(ids, c.ID)
	}
	return ids
}

// Run judges one rig: every check of the catalogue gives at least one finding, then the site's own rules. The
// result is in catalogue order and stable.
func Run(rig *inventory.Rig, host *facts.Host, policy Policy, cat *catalog.Catalog) []Finding {
	s := newSubject(rig, host, policy, cat)
	var all []Finding
	for _, c := range All() {
		all = append(all, c.finish(c.run(s))...)
	}
	all = append(all, siteRules(s)...)
	link(all)
	return all
}

func newSubject(rig *inventory.Rig, host *facts.Host, policy Policy, cat *catalog.Catalog) Subject {
	if rig == nil {
		rig = &inventory.Rig{}
	}
	s := Subject{Rig: rig, Host: host, Policy: policy, Cat: cat, functions: make(map[string]facts.Device, len(host.PCI))}
	for _, d := range host.PCI {
		s.functions[d.BDF] = d
	}
	s.Cards, s.Others = trainingCards(s)
	return s
}

// run applies what all checks share: the kind of machine and the needed facts.
func (c Check) run(s Subject) []Finding {
	if kind := s.Host.Kind.Value; c.Metal && (kind == "vm" || kind == "container" || kind == "wsl") {
		return []Finding{unknown(rigSubject, "this is a %s: it does not show the machine beneath", kindWord(kind)).
			knownBy("run the check on the host itself").because(ev(s.Host.Kind))}
	}
	for _, k := range c.Needs {
		if why, missing := s.Host.Gaps[k]; missing {
			return []Finding{unknown(rigSubject, "%s", why).knownBy(howToKnow[k])}
		}
	}
	return c.Decide(s)
}

func kindWord(kind string) string {
	return map[string]string{"vm": "virtual machine", "container": "container", "wsl": "WSL guest"}[kind]
}

// howToKnow is what would make a missing kind of fact known.
var howToKnow = map[facts.Kind]string{
	facts.KindPCI:    "give a snapshot of the host (preflight collect)",
	facts.KindConfig: "let preflight use root: log in as root, allow sudo -n, or --ask-become-pass",
	facts.KindIOMem:  "let preflight use root: log in as root, allow sudo -n, or --ask-become-pass",
	facts.KindSMBIOS: "let preflight use root: log in as root, allow sudo -n, or --ask-become-pass",
	facts.KindSMI:    "install the NVIDIA driver so that nvidia-smi answers",
	facts.KindCPU:    "give /proc/cpuinfo, or a snapshot of the host",
	facts.KindMemory: "give /proc/meminfo, or a snapshot of the host",
	facts.KindDisks:  "give a snapshot of the host (preflight collect)",
	facts.KindP2P:    "give nvidia-smi topo -p2p r, or a snapshot of the host",
	facts.KindNCCL:   "measure the host: preflight probe nccl",
	facts.KindDDP:    "train for some minutes: preflight probe ddp",
	facts.KindBurnIn: "put the cards under load: preflight probe burn-in",
}

// readTheLog is what makes the kernel's log known: most systems show it to root alone.
const readTheLog = "give dmesg of this boot, or let preflight use root"

// finish completes findings with what follows from the check, and guards that there is at least one.
func (c Check) finish(fs []Finding) []Finding {
	if len(fs) == 0 {
		fs = []Finding{unknown(rigSubject, "the check came to no verdict")}
	}
	for i := range fs {
		f := &fs[i]
		f.Check = c.ID
		f.ID = c.ID + "@" + f.Subject
		f.Fingerprint = fingerprint(c.ID, f.Subject, f.Remedy)
		if f.Evidence == nil {
			f.Evidence = []Evidence{}
		}
	}
	sort.SliceStable(fs, func(i, j int) bool { return order[fs[i].Verdict] < order[fs[j].Verdict] })
	return fs
}

// rigSubject is the subject of findings about the rig as a whole.
const rigSubject = "rig"

func finding(v Verdict, subject, format string, args ...any) Finding {
	return Finding{Verdict: v, Subject: subject, Summary: fmt.Sprintf(format, args...)}
}

func pass(subject, format string, args ...any) Finding {
	return finding(Pass, subject, format, args...)
}

func warn(subject, format string, args ...any) Finding {
	return finding(Warn, subject, format, args...)
}

func fail(subject, format string, args ...any) Finding {
	return finding(Fail, subject, format, args...)
}

func skip(subject, format string, args ...any) Finding {
	return finding(Skip, subject, format, args...)
}

func unknown(subject, format string, args ...any) Finding {
	return finding(Unknown, subject, format, args...)
}

// saw sets what was observed and what was expected.
func (f Finding) saw(observed, expected string) Finding {
	f.Observed, f.Expected = observed, expected
	return f
}

// noting adds a remark.
func (f Finding) noting(format string, args ...any) Finding {
	text := fmt.Sprintf(format, args...)
	if text == "" {
		return f
	}
	if f.Note != "" {
		text = f.Note + "; " + text
	}
	f.Note = text
	return f
}

// knownBy says what would turn an unknown into a verdict.
func (f Finding) knownBy(how string) Finding { f.Known = how; return f }

// because adds evidence; absent facts are dropped.
func (f Finding) because(evidence ...Evidence) Finding {
	for _, e := range evidence {
		if e.Source != "" {
			f.Evidence = append(f.Evidence, e)
		}
	}
	return f
}

// fix names the remedy and the values that its steps need, as pairs.
func (f Finding) fix(code string, pairs ...string) Finding {
	f.Remedy = code
	f.Args = map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Args[pairs[i]] = pairs[i+1]
	}
	return f
}

// ev is a fact as evidence.
func ev[T any](f facts.Fact[T]) Evidence {
	if !f.Known() {
		return Evidence{}
	}
	return Evidence{Source: f.Source, Value: fmt.Sprint(f.Value)}
}

// evs is a value of a list with its own source.
func evs(source string, value any) Evidence {
	return Evidence{Source: source, Value: fmt.Sprint(value)}
}

// plural is "1 card", "2 cards".
func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func bdfs(cards []facts.Card) string {
	var out []string
	for _, c := range cards {
		out = append(out, c.BDF)
	}
	return strings.Join(out, ", ")
}
