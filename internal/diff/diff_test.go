package diff

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"preflight/checks"
)

// machine is a rig of two cards as the JSON report has it.
const machine = `{
 "bios": {"version": {"value": "2.4", "source": "dmi"}, "date": {"value": "12/30/2021", "source": "dmi"}},
 "os": {"kernel": {"value": "6.8.0-60", "source": "f"}, "cmdline": {"value": "BOOT_IMAGE=/a root=/dev/x ro quiet iommu=pt", "source": "f"}, "uptime": {"value": 100, "source": "f"}},
 "memory": {"installed": {"value": 524288, "source": "dmi", "unit": "MiB"}, "total": {"value": 515000, "source": "f"},
  "dimms": [{"locator": "A1", "size_mib": 32768, "mt_s": 3200}, {"locator": "B1", "size_mib": 32768, "mt_s": 3200}]},
 "cards": [
  {"bdf": "0000:41:00.0", "id": {"value": "aaaa", "source": "s"}, "name": {"value": "GeForce RTX 4090", "source": "s"}, "bar1": {"value": 32768, "source": "s"}, "power_limit": {"value": 450, "source": "s"}, "temperature": {"value": 34, "source": "s"}},
  {"bdf": "0000:81:00.0", "id": {"value": "bbbb", "source": "s"}, "name": {"value": "GeForce RTX 4090", "source": "s"}, "bar1": {"value": 32768, "source": "s"}, "power_limit": {"value": 450, "source": "s"}}],
 "pci": [
  {"bdf": "0000:40:01.1", "class": "060400", "root_bus": "0000:40", "link": {"width": {"value": 16, "source": "s"}, "speed": {"value": 2.5, "source": "s"}, "max_speed": {"value": 16, "source": "s"}}},
  {"bdf": "0000:41:00.0", "class": "030000", "root_bus": "0000:40", "chain": ["0000:40:01.1"], "link": {"width": {"value": 16, "source": "s"}, "max_width": {"value": 16, "source": "s"}}},
  {"bdf": "0000:80:01.1", "class": "060400", "root_bus": "0000:80", "link": {"width": {"value": 16, "source": "s"}}},
  {"bdf": "0000:81:00.0", "class": "030000", "root_bus": "0000:80", "chain": ["0000:80:01.1"], "link": {"width": {"value": 16, "source": "s"}, "max_width": {"value": 16, "source": "s"}}}],
 "slots": [{"designation": "SLOT1", "bdf": "0000:41:00.0"}, {"designation": "SLOT3", "bdf": "0000:81:00.0"}],
 "p2p": [{"a": "0000:41:00.0", "b": "0000:81:00.0", "op": "r", "code": "OK"}],
 "limits": {"memlock": {"value": 8192, "source": "limits"}}, "iommu": {"card_types": {"0000:41:00.0": "identity", "0000:81:00.0": "identity"}},
 "software": {"toolkit": [{"name": "nvidia-container-toolkit", "value": "1.17.4", "source": "cmd"}]},
 "disks": [{"name": "nvme0n1", "model": "990 PRO", "bytes": 2000000000000}],
 "load": [{"bdf": "0000:41:00.0", "loaded": true, "speed_gts": 16, "width": 16}, {"bdf": "0000:81:00.0", "loaded": true, "speed_gts": 16, "width": 16}],
 "bandwidth": [{"bdf": "0000:41:00.0", "direction": "h2d", "cards": 1, "bytes": 67108864, "best": 25.0, "spread": 0.02}, {"bdf": "0000:81:00.0", "direction": "h2d", "cards": 1, "bytes": 67108864, "best": 25.0, "spread": 0.02}],
 "nccl": [{"engine": "native", "layout": "single", "ranks": 2, "spread": 0.04, "rows": [{"bytes": 1048576, "busbw": 3}, {"bytes": 268435456, "busbw": 14.0}]}]
}`

// altered is the machine with parts of its text replaced, old and new in turn.
func altered(pairs ...string) State {
	text := strings.NewReplacer(pairs...).Replace(machine)
	facts := map[string]any{}
	if err := json.Unmarshal([]byte(text), &facts); err != nil {
		panic(err)
	}
	return State{Name: "node-a", Facts: Normal(facts)}
}

func lines(r Rig) []string {
	out := []string{}
	for _, c := range r.Facts {
		out = append(out, strings.Join([]string{string(c.Effect), c.Where, c.What, c.Before, c.After}, "|"))
	}
	return out
}

func TestFacts(t *testing.T) {
	for _, tc := range []struct {
		name    string
		after   State
		want    []string
		regress bool
	}{
		{"the same", altered(), []string{}, false},
		{"noise", altered(`"speed": {"value": 2.5`, `"speed": {"value": 16`, `"temperature": {"value": 34`, `"temperature": {"value": 80`, `"uptime": {"value": 100`, `"uptime": {"value": 5`, `"total": {"value": 515000`, `"total": {"value": 514000`), []string{}, false},
		{
			"a BIOS update that resets Resizable BAR", altered(`"2.4"`, `"2.6"`, `"12/30/2021"`, `"03/10/2025"`, `"bar1": {"value": 32768`, `"bar1": {"value": 256`),
			[]string{"worse|0000:41:00.0 (SLOT1)|BAR1|32768 MiB|256 MiB", "worse|0000:81:00.0 (SLOT3)|BAR1|32768 MiB|256 MiB", "changed||BIOS version|2.4|2.6", "changed||BIOS date|12/30/2021|03/10/2025"},
			true,
		},
		{
			"a link became narrower", altered(`"chain": ["0000:80:01.1"], "link": {"width": {"value": 16`, `"chain": ["0000:80:01.1"], "link": {"width": {"value": 8`),
			[]string{"worse|0000:81:00.0 (SLOT3)|lanes|16|8"},
			true,
		},
		{"bus numbers moved", altered("0000:81", "0000:a1", "0000:80", "0000:a0"), []string{"moved|card bbbb|address|0000:81:00.0|0000:a1:00.0"}, false},
		{
			"cards traded places", altered("aaaa", "bbbb", "bbbb", "aaaa"),
			[]string{"moved|card aaaa|place|0000:41:00.0 (SLOT1)|0000:81:00.0 (SLOT3)", "moved|card bbbb|place|0000:81:00.0 (SLOT3)|0000:41:00.0 (SLOT1)"},
			false,
		},
		{"another card", altered("bbbb", "cccc"), []string{"changed|0000:81:00.0 (SLOT3)|another card|GeForce RTX 4090 bbbb|GeForce RTX 4090 cccc"}, false},
		{
			"the command line", altered("iommu=pt", "iommu=off pci=realloc", "quiet ", ""),
			[]string{"changed|kernel command line|iommu|pt|off", "changed|kernel command line|quiet|set|", "added|kernel command line|pci||realloc"},
			false,
		},
		{"a module is gone", altered(`, {"locator": "B1", "size_mib": 32768, "mt_s": 3200}`, ""), []string{"gone|module B1|size|32768 MiB|"}, true},
		{"a socket is empty", altered(`"locator": "B1", "size_mib": 32768, "mt_s": 3200`, `"locator": "B1", "size_mib": 0, "mt_s": 0`), []string{"gone|module B1|size|32768 MiB|"}, true},
		{"no more limit is better", altered(`"memlock": {"value": 8192`, `"memlock": {"value": -1`), []string{"better||locked memory limit|8192 KiB|unlimited"}, false},
		{"the IOMMU translates", altered(`"0000:81:00.0": "identity"`, `"0000:81:00.0": "DMA-FQ"`), []string{"changed|0000:81:00.0 (SLOT3)|IOMMU domain|identity|DMA-FQ"}, false},
		{"another container toolkit", altered(`"value": "1.17.4"`, `"value": "1.18.0"`), []string{"changed|nvidia-container-toolkit|version|1.17.4|1.18.0"}, false},
		{"modules were not read", altered(`{"locator": "A1", "size_mib": 32768, "mt_s": 3200}, {"locator": "B1", "size_mib": 32768, "mt_s": 3200}`, ""), []string{"unseen||memory modules||"}, false},
		{"P2P is lost", altered(`"code": "OK"`, `"code": "CNS"`), []string{"worse|0000:41:00.0 ↔ 0000:81:00.0|P2P read|OK|CNS"}, true},
		{"a rate within the spread", altered(`"best": 25.0`, `"best": 24.3`, `"busbw": 14.0`, `"busbw": 13.5`), []string{}, false},
		{"a rate that fell", altered(`"0000:41:00.0", "direction": "h2d", "cards": 1, "bytes": 67108864, "best": 25.0`, `"0000:41:00.0", "direction": "h2d", "cards": 1, "bytes": 67108864, "best": 20.0`), []string{"worse|0000:41:00.0 (SLOT1)|host to card with one card copying, 64 MiB|25.00 GB/s|20.00 GB/s"}, true},
		{"a rate that rose", altered(`"busbw": 14.0`, `"busbw": 18.0`), []string{"better||all-reduce, native, single, P2P allowed, 2 ranks, 256 MiB|14.00 GB/s|18.00 GB/s"}, false},
		{"a wide spread forgives", altered(`"best": 25.0, "spread": 0.02`, `"best": 20.0, "spread": 0.30`), []string{}, false},
		{"nothing was measured", altered(`"load": [{`, `"load": [], "x": [{`, `"bandwidth": [{`, `"bandwidth": [], "y": [{`, `"nccl": [{`, `"nccl": [], "z": [{`), []string{"unseen||links under load||", "unseen||measured copies between host and cards||", "unseen||measured all-reduce||"}, false},
		{"a value is not read any more", altered(`"version": {"value": "2.4", "source": "dmi"}, `, ""), []string{"unseen||BIOS version|2.4|"}, false},
		{"a disk more", altered(`"disks": [`, `"disks": [{"name": "nvme1n1", "model": "990 PRO", "bytes": 2000000000000}, `), []string{"added|disk 990 PRO #2|size||2000 GB"}, false},
	} {
		got := Compare([]State{altered()}, []State{tc.after}, nil)
		if d := cmp.Diff(tc.want, lines(got.Rigs[0])); d != "" {
			t.Errorf("%s:\n%s", tc.name, d)
		}
		if got.Regressed() != tc.regress {
			t.Errorf("%s: regressed is %v", tc.name, got.Regressed())
		}
		if got.Empty() != (len(tc.want) == 0) {
			t.Errorf("%s: empty is %v", tc.name, got.Empty())
		}
		mirror(t, tc.name, tc.after)
	}
}

// mirror holds that what is worse one way is better the other way.
func mirror(t *testing.T, name string, after State) {
	t.Helper()
	there, back := Compare([]State{altered()}, []State{after}, nil).Rigs[0].Facts, Compare([]State{after}, []State{altered()}, nil).Rigs[0].Facts
	opposite := map[Effect][]Effect{Worse: {Better}, Better: {Worse}, Gone: {Added}, Added: {Gone, Changed}, Unseen: {Seen}, Seen: {Unseen}, Moved: {Moved}, Changed: {Changed, Added}}
	if len(there) != len(back) {
		t.Errorf("%s: %d changes there, %d back", name, len(there), len(back))
	}
	for _, c := range there {
		if !slices.ContainsFunc(back, func(b Change) bool {
			return b.What == c.What && b.Before == c.After && b.After == c.Before && slices.Contains(opposite[c.Effect], b.Effect)
		}) {
			t.Errorf("%s: %+v has no opposite in %+v", name, c, back)
		}
	}
}

func find(check, subject string, v checks.Verdict) checks.Finding {
	return checks.Finding{ID: check + "@" + subject, Check: check, Subject: subject, Verdict: v, Summary: check + " is " + string(v)}
}

func TestFindings(t *testing.T) {
	fs := func(list ...checks.Finding) []checks.Finding { return list }
	out := find("pcie.width", "rig", checks.Unknown)
	out.Args = map[string]string{"left_out": "yes"}
	for _, tc := range []struct {
		name          string
		before, after []checks.Finding
		want          []string
		worse, dark   bool
	}{
		{"as it was", fs(find("pcie.width", "rig", checks.Pass)), fs(find("pcie.width", "rig", checks.Pass)), nil, false, false},
		{"new fault", fs(find("pcie.width", "rig", checks.Pass)), fs(find("pcie.width", "0000:41:00.0", checks.Fail)), []string{"new pcie.width@0000:41:00.0"}, true, false},
		{"new warning", fs(find("pcie.width", "rig", checks.Pass)), fs(find("pcie.width", "0000:41:00.0", checks.Warn)), []string{"new pcie.width@0000:41:00.0"}, false, false},
		{"fixed", fs(find("pcie.width", "0000:41:00.0", checks.Fail)), fs(find("pcie.width", "rig", checks.Pass)), []string{"fixed pcie.width@0000:41:00.0"}, false, false},
		{"risen", fs(find("power.psu", "rig", checks.Warn)), fs(find("power.psu", "rig", checks.Fail)), []string{"worse power.psu@rig"}, true, false},
		{"fallen", fs(find("power.psu", "rig", checks.Fail)), fs(find("power.psu", "rig", checks.Warn)), []string{"better power.psu@rig"}, false, false},
		{"still there", fs(find("power.psu", "rig", checks.Fail)), fs(find("power.psu", "rig", checks.Fail)), []string{"unchanged power.psu@rig"}, false, false},
		{"became unknown", fs(find("power.psu", "rig", checks.Pass)), fs(find("power.psu", "rig", checks.Unknown)), []string{"became-unknown power.psu@rig"}, false, true},
		{"a fault became unknown", fs(find("pcie.width", "0000:41:00.0", checks.Fail)), fs(find("pcie.width", "rig", checks.Unknown)), []string{"became-unknown pcie.width@0000:41:00.0"}, false, true},
		{"now known", fs(find("power.psu", "rig", checks.Unknown)), fs(find("power.psu", "rig", checks.Pass)), []string{"now-known power.psu@rig"}, false, false},
		{"was unknown, is a fault", fs(find("power.psu", "rig", checks.Unknown)), fs(find("power.psu", "rig", checks.Fail)), []string{"new power.psu@rig"}, true, false},
		{"a check that the other side did not have", fs(find("power.psu", "rig", checks.Pass)), fs(find("power.psu", "rig", checks.Pass), find("pcie.width", "rig", checks.Fail)), []string{"now-known pcie.width@rig"}, false, false},
		{"not looked at now", fs(find("pcie.width", "0000:41:00.0", checks.Fail)), fs(out), nil, false, false},
		{"not looked at then", fs(out), fs(find("pcie.width", "0000:41:00.0", checks.Fail)), nil, false, false},
		{"a second card", fs(find("pcie.width", "0000:41:00.0", checks.Fail)), fs(find("pcie.width", "0000:41:00.0", checks.Fail), find("pcie.width", "0000:81:00.0", checks.Fail)), []string{"new pcie.width@0000:81:00.0", "unchanged pcie.width@0000:41:00.0"}, true, false},
	} {
		b, a := altered(), altered()
		b.Findings, a.Findings = tc.before, tc.after
		got := Compare([]State{b}, []State{a}, nil)
		var turns []string
		for _, v := range got.Rigs[0].Findings {
			turns = append(turns, string(v.Turn)+" "+v.ID)
		}
		if d := cmp.Diff(tc.want, turns); d != "" {
			t.Errorf("%s:\n%s", tc.name, d)
		}
		if got.Regressed() != tc.worse || got.Darkened() != tc.dark {
			t.Errorf("%s: regressed %v, darkened %v", tc.name, got.Regressed(), got.Darkened())
		}
	}
}

// A fault stays the same fault when the bus numbers move.
func TestFindingsFollowCards(t *testing.T) {
	b, a := altered(), altered("0000:81", "0000:a1", "0000:80", "0000:a0")
	b.Findings = []checks.Finding{find("pcie.width", "0000:81:00.0", checks.Fail)}
	a.Findings = []checks.Finding{find("pcie.width", "0000:a1:00.0", checks.Fail)}
	got := Compare([]State{b}, []State{a}, nil).Rigs[0].Findings
	if len(got) != 1 || got[0].Turn != Unchanged {
		t.Errorf("%+v", got)
	}
}

// What was not measured because nobody asked for it is not told; what was measured with fewer cards is no other figure of the same.
func TestMeasuredOtherwise(t *testing.T) {
	still := altered(`"bandwidth": [{`, `"bandwidth": [], "y": [{`, `"nccl": [{`, `"nccl": [], "z": [{`)
	only := func(check string) bool { return check != "pcie.width" }
	if got := Compare([]State{altered()}, []State{still}, only); !got.Empty() {
		t.Errorf("left out: %+v", got.Rigs[0].Facts)
	}
	if got := Compare([]State{altered()}, []State{still}, nil); len(got.Rigs[0].Facts) != 2 {
		t.Errorf("not left out: %+v", got.Rigs[0].Facts)
	}
	fewer := altered(`"ranks": 2`, `"ranks": 1`)
	cards := fewer.Facts["cards"].([]any)
	fewer.Facts["cards"] = cards[:1]
	for _, c := range Compare([]State{altered()}, []State{fewer}, nil).Rigs[0].Facts {
		if strings.HasPrefix(c.What, "all-reduce") {
			t.Errorf("%+v", c)
		}
	}
}

func TestDeclaredOtherwise(t *testing.T) {
	for _, tc := range []struct {
		before, after string
		notes         int
	}{{"a", "a", 0}, {"a", "b", 1}, {"", "b", 0}, {"a", "", 0}} {
		b, a := altered(), altered()
		b.Declared, a.Declared = tc.before, tc.after
		if got := Compare([]State{b}, []State{a}, nil).Rigs[0].Notes; len(got) != tc.notes {
			t.Errorf("%q and %q: %v", tc.before, tc.after, got)
		}
	}
}

func TestRigs(t *testing.T) {
	named := func(name string) State { s := altered(); s.Name = name; return s }
	lost := State{Name: "b", Lost: true}
	got := Compare([]State{named("a"), named("b"), named("c")}, []State{named("a"), lost, named("d")}, nil)
	var out []string
	for _, r := range got.Rigs {
		out = append(out, r.Name+" "+r.Presence)
	}
	if d := cmp.Diff([]string{"a both", "b lost", "c gone", "d new"}, out); d != "" {
		t.Error(d)
	}
	if !got.Darkened() || got.Regressed() {
		t.Errorf("darkened %v, regressed %v", got.Darkened(), got.Regressed())
	}
	one := Compare([]State{named("old")}, []State{named("new")}, nil).Rigs[0]
	if one.Name != "new" || one.Was != "old" || one.Presence != "both" {
		t.Errorf("%+v", one)
	}
}

// Facts of a foreign or a broken report must not stop a comparison.
func FuzzCompare(f *testing.F) {
	// Seeds are small: a whole machine is minimized for longer than fuzzing lasts.
	f.Add(`{"cards": [{"bdf": "0000:41:00.0", "id": {"value": "aa"}, "bar1": {"value": 256}}], "os": {"cmdline": {"value": "quiet iommu=pt"}}}`, `{"cards": [{"bdf": "0000:81:00.0", "id": {"value": "aa"}}]}`)
	f.Add(`{"memory": {"dimms": [{"locator": "A1", "size_mib": 1}]}, "p2p": [{"a": "x", "b": "y", "op": "r", "code": "OK"}]}`, `{"limits": {"memlock": {"value": -1}}, "bandwidth": [{"bdf": "x", "direction": "h2d", "cards": 1, "bytes": 1, "best": 2}]}`)
	f.Add(`{"pci": [{"bdf": "0000:40:01.1", "class": "060400", "chain": [4, "a"], "root_bus": "r"}]}`, `{"cards": [1, {"bdf": 7}], "pci": {"x": []}, "os": {"cmdline": {"value": 4}}, "nccl": [{"rows": [{}]}]}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := map[string]any{}, map[string]any{}
		if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
			return
		}
		Compare([]State{{Facts: x}}, []State{{Facts: y}}, nil)
		if r := Compare([]State{{Facts: x}}, []State{{Facts: x}}, nil); !r.Empty() {
			t.Errorf("a state differs from itself: %+v", r)
		}
	})
}
