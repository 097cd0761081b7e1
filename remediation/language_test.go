package remediation

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"preflight/checks"
	"preflight/internal/lang"
)

func han(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// Every remedy is written in both languages, with the same values in both.
func TestEveryRemedyIsWrittenInChinese(t *testing.T) {
	c := remedies(t)
	for _, code := range c.Codes() {
		r, _ := c.Remedy(code)
		texts := []Text{r.Title}
		for _, s := range r.Steps {
			texts = append(texts, s.Text)
		}
		for _, text := range texts {
			en, zh := placeholder.FindAllString(text.En, -1), placeholder.FindAllString(text.Zh, -1)
			slices.Sort(en)
			slices.Sort(zh)
			switch {
			case !han(text.Zh):
				t.Errorf("%s: no Chinese for %q", code, text.En)
			case !slices.Equal(en, zh):
				t.Errorf("%s: %q has the values %v, its Chinese %v", code, text.En, en, zh)
			}
		}
		for name, words := range r.Params {
			if said := lang.Zh.Say(words); strings.Contains(strings.TrimSpace(words), " ") && !han(said) {
				t.Errorf("%s: %s: no Chinese for %q", code, name, words)
			}
		}
	}
}

// englishLeft are words of a sentence in a filled remedy that stayed English. Names of menus begin with capitals.
var englishLeft = regexp.MustCompile(`(^|[^-\w./:])[a-z]{2,}( [a-z]{2,}){2,}`)

func TestFilledRemediesHaveNoEnglishSentence(t *testing.T) {
	c := remedies(t)
	for _, b := range []Board{{}, {Vendor: "ASUSTeK COMPUTER INC.", Name: "Pro WS WRX90E-SAGE SE"}, {Vendor: "Supermicro", Name: "H12DSG-O-CPU"}} {
		for _, code := range c.Codes() {
			fix, ok := c.ForIn(lang.Zh, checks.Finding{Remedy: code}, b)
			if !ok {
				t.Fatal(code)
			}
			texts := []string{fix.Title}
			for _, s := range fix.Steps {
				texts = append(texts, s.Text, s.Menu)
			}
			for _, text := range texts {
				if m := englishLeft.FindString(regexp.MustCompile(`'[^']*'`).ReplaceAllString(text, "")); m != "" {
					t.Errorf("%s: %q in %q", code, m, text)
				}
			}
		}
	}
}
