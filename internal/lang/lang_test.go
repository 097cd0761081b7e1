package lang

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

func book(t *testing.T, text string) *phrasebook {
	t.Helper()
	b, err := load(fstest.MapFS{"zh/x.txt": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSay(t *testing.T) {
	b := book(t, strings.Join([]string{
		"%s runs %s", "%s 运行在 %s", "",
		"%s runs %s, slot and card can do %s", "%s 运行在 %s，插槽与显卡可达 %s", "",
		"%d of %d cards", "%[2]d 张卡中的 %[1]d 张", "",
		"this is a %s", "这是%s", "", "virtual machine", "虚拟机", "",
		"%.0f %% of it", "其 %.0f %%", "", "nothing", "无",
	}, "\n"))
	for _, row := range []struct{ name, in, want string }{
		{"the heavier format wins", "0000:01:00.0 runs x8, slot and card can do x16", "0000:01:00.0 运行在 x8，插槽与显卡可达 x16"},
		{"values change places", "7 of 8 cards", "8 张卡中的 7 张"},
		{"a value is a text itself", "this is a virtual machine", "这是虚拟机"},
		{"per cent", "43 % of it", "其 43 %"},
		{"joined", "nothing; 1 of 2 cards", "无；2 张卡中的 1 张"},
		{"unheard of", "some other text", "some other text"},
		{"a number is demanded", "seven of 8 cards", "seven of 8 cards"},
	} {
		if got := b.say(row.in, maxDepth); got != row.want {
			t.Errorf("%s: %q became %q, want %q", row.name, row.in, got, row.want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"lost placeholder":  "%d of %d\n%d\n",
		"other verb":        "%d cards\n%s 张卡\n",
		"wrong index":       "%s and %d\n%[2]s 与 %[1]d\n",
		"two ways":          "a\n甲\n\na\n乙\n",
		"no second line":    "a\n甲\n\nb",
		"index out of line": "%s\n%[3]s\n",
	} {
		if _, err := load(fstest.MapFS{"zh/x.txt": {Data: []byte(text)}}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// sample is what a placeholder might print; each argument another one.
func sample(s slot) any {
	switch s.text[len(s.text)-1] {
	case 'd':
		return 11 + s.arg
	case 'f', 'g':
		return 2.5 + float64(s.arg)
	case 'x':
		return 0xa0 + s.arg
	case 't':
		return true
	}
	return fmt.Sprintf("0000:%02x:00.0", s.arg)
}

// Every entry must be found again by a text that it printed: no other entry may be mistaken for it.
func TestEveryEntryIsFound(t *testing.T) {
	b := chinese()
	for english, zh := range b.known {
		slots := verbs(english)
		args := make([]any, len(slots))
		for i, s := range slots {
			args[i] = sample(s)
		}
		text, want := fmt.Sprintf(english, args...), fmt.Sprintf(zh, args...)
		if got := b.say(text, maxDepth); got != want {
			t.Errorf("%q\n  became %q\n  want   %q", text, got, want)
		}
	}
}

// same are entries that are alike in both languages on purpose.
var same = regexp.MustCompile(`^[^\p{L}]*$|^[A-Z0-9%\[\]. /-]+$`)

func TestEntriesAreChinese(t *testing.T) {
	for english, zh := range chinese().known {
		if same.MatchString(verb.ReplaceAllString(english, "")) {
			continue
		}
		if english == zh || !strings.ContainsFunc(zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%q is said as %q", english, zh)
		}
	}
}

func TestLanguages(t *testing.T) {
	for value, want := range map[string]Language{"zh_CN.UTF-8": Zh, "zh": Zh, "en_US.UTF-8": En, "C": En, "de_DE": En, "": En} {
		if got := FromEnv(func(name string) string { return map[string]string{"LANG": value}[name] }); got != want {
			t.Errorf("LANG=%s: %s, want %s", value, got, want)
		}
	}
	if l := FromEnv(func(name string) string { return map[string]string{"LC_ALL": "en_US", "LANG": "zh_CN"}[name] }); l != En {
		t.Errorf("LC_ALL does not win: %s", l)
	}
	if l, err := Parse("zh-CN"); l != Zh || err != nil {
		t.Error(l, err)
	}
	if _, err := Parse("klingon"); err == nil {
		t.Error("klingon was taken")
	}
}

func FuzzSay(f *testing.F) {
	f.Add("0000:01:00.0 runs x8; nothing, %s")
	f.Fuzz(func(t *testing.T, text string) { Zh.Say(text) })
}
