package accept

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

var asked = []Rig{
	{"node-a", []Item{{"plugs are in", "插头已插到底"}, {"fans turn", "风扇转动"}}},
	{"node-b", []Item{{"plugs are in", "插头已插到底"}}},
}

func TestChecklistComesBack(t *testing.T) {
	list := string(WriteChecklist(asked))
	if _, err := ParseChecklist([]byte(list), asked); err == nil || !strings.Contains(err.Error(), `node-b: no answer to "插头已插到底"`) || !strings.Contains(err.Error(), "names who answered") {
		t.Errorf("an empty list is answered: %v", err)
	}
	list = strings.ReplaceAll(list, "[ ]", "[x]")
	list = strings.Replace(list, "by:", "by: 李伟", 1)
	list = strings.Replace(list, "[x] 风扇转动", "[!] 风扇转动：三号风扇不转", 1)
	got, err := ParseChecklist([]byte(list), asked)
	if err != nil {
		t.Fatal(err)
	}
	want := Answers{By: "李伟", Rigs: map[string][]Answer{
		"node-a": {{"plugs are in", "yes", ""}, {"fans turn", "no", "三号风扇不转"}},
		"node-b": {{"plugs are in", "yes", ""}},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"node-a: fans turn"}, got.Refused()); d != "" {
		t.Error(d)
	}
}

func TestChecklistMistakes(t *testing.T) {
	good := "by: a\nrig: node-a\n[x] plugs are in\n[-] fans turn: water\nrig: node-b\n[x] plugs are in\n"
	if _, err := ParseChecklist([]byte(good), asked); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ from, to, want string }{
		"foreign item":   {"[x] plugs are in\n[-]", "[x] plugs are out\n[-]", `has no item "plugs are out"`},
		"foreign rig":    {"rig: node-b", "rig: node-c", `no rig "node-c"`},
		"no such answer": {"[-] fans", "[?] fans", "[?] is no answer"},
		"twice":          {"[-] fans turn: water", "[-] fans turn\n[x] fans turn", "a second time"},
		"prose":          {"by: a", "by: a\nall fine!", "line 2 is no line of a checklist"},
		"escape codes":   {"water", "\x1b[2J", "control characters"},
		"before a rig":   {"rig: node-a\n", "", "before a line rig:"},
		"nobody":         {"by: a", "by:", "names who answered"},
	} {
		_, err := ParseChecklist([]byte(strings.Replace(good, tc.from, tc.to, 1)), asked)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseChecklist(f *testing.F) {
	f.Add(WriteChecklist(asked))
	f.Add([]byte("by: a\nrig: node-a\n[x] plugs are in: \xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := ParseChecklist(raw, asked)
		if err == nil && (len(got.Rigs["node-a"]) != 2 || len(got.Rigs["node-b"]) != 1 || got.By == "") {
			t.Errorf("taken for complete: %+v", got)
		}
	})
}

func TestAsk(t *testing.T) {
	var out bytes.Buffer
	got, err := Ask(strings.NewReader("\n李伟\n\nwhat\ny\nn fan 3 is still\n-\n"), &out, asked)
	if err != nil {
		t.Fatal(err)
	}
	if got.By != "李伟" || got.Rigs["node-a"][1] != (Answer{"fans turn", "no", "fan 3 is still"}) || got.Rigs["node-b"][0].Answer != "none" {
		t.Errorf("answers are %+v", got)
	}
	if n := strings.Count(out.String(), "插头已插到底? "); n != 4 { // twice no answer, then one, then the other rig
		t.Errorf("asked %d times:\n%s", n, out.String())
	}
	if _, err := Ask(strings.NewReader("me\ny\n"), &out, asked); err == nil {
		t.Error("half a list is an answer")
	}
}

func TestPrincipal(t *testing.T) {
	k, other := key(t, "ed25519"), key(t, "ed25519")
	pub := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.PublicKey())))
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		file, want string
		key        ssh.PublicKey
		ok         bool
	}{
		"listed":              {"ops@vendor.example " + pub, "", k.PublicKey(), true},
		"the wanted name":     {"ops@vendor.example " + pub, "ops@vendor.example", k.PublicKey(), true},
		"another name":        {"ops@vendor.example " + pub, "eve@vendor.example", k.PublicKey(), false},
		"another key":         {"ops@vendor.example " + pub, "", other.PublicKey(), false},
		"by pattern":          {"*@vendor.example,!eve@vendor.example " + pub, "ops@vendor.example", k.PublicKey(), true},
		"negated":             {"*@vendor.example,!eve@vendor.example " + pub, "eve@vendor.example", k.PublicKey(), false},
		"our namespace":       {`a namespaces="git,preflight-*" ` + pub, "", k.PublicKey(), true},
		"another namespace":   {`a namespaces="git" ` + pub, "", k.PublicKey(), false},
		"expired":             {`a valid-before="20261201" ` + pub, "", k.PublicKey(), false},
		"not yet":             {`a valid-after="20261202Z" ` + pub, "", k.PublicKey(), false},
		"within its time":     {`a valid-after="20260101Z",valid-before="203001010000Z" ` + pub, "", k.PublicKey(), true},
		"the second line":     {"a " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(other.PublicKey()))) + "\n# x\n\nb " + pub, "b", k.PublicKey(), true},
		"brackets are plain":  {"[ab] " + pub, "a", k.PublicKey(), false},
		"quoted names":        {`"ops vendor" ` + pub, "ops vendor", k.PublicKey(), true},
		"expired, then valid": {`a valid-before="20200101Z" ` + pub + "\na " + pub, "a", k.PublicKey(), true},
	} {
		signers, err := ParseSigners([]byte(tc.file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := Principal(signers, tc.key, tc.want, at)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, bad := range []string{"ops", "ops ssh-ed25519 AAAA", `a cert-authority ` + pub, `a wrong="x" ` + pub, `a valid-before="soon" ` + pub, `"a ` + pub} {
		if _, err := ParseSigners([]byte(bad)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%.30q is taken: %v", bad, err)
		}
	}
}

func FuzzParseSigners(f *testing.F) {
	f.Add("ops@vendor.example namespaces=\"git\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEYGgnyb7gDhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh")
	f.Add("\"a b\",!c valid-after=20260101Z ssh-ed25519 AAAA\n#\n")
	f.Fuzz(func(t *testing.T, raw string) {
		signers, err := ParseSigners([]byte(raw))
		if err != nil {
			return
		}
		for _, s := range signers {
			_, _ = Principal([]Signer{s}, s.Key, "x", time.Time{})
		}
	})
}
