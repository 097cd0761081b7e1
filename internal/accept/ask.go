package accept

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Ask asks a person for every answer, on a terminal. An empty line is no answer: it asks again.
func Ask(in io.Reader, out io.Writer, rigs []Rig) (Answers, error) {
	answers := Answers{Rigs: map[string][]Answer{}}
	a := asker{in: bufio.NewReader(in), out: out}
	answers.By = a.until("Who answers for what no tool sees? ", func(s string) bool { return s != "" })
	for _, r := range rigs {
		a.say("\n%s: y yes, n no, - does not apply; a note may follow\n", r.Name)
		for _, item := range r.Items {
			text := a.until("  "+item.Said+"? ", func(s string) bool { return s != "" && letters[s[0]] != "" })
			if a.err != nil {
				return answers, a.err
			}
			answers.Rigs[r.Name] = append(answers.Rigs[r.Name], Answer{item.Text, letters[text[0]], strings.TrimSpace(text[1:])})
		}
	}
	return answers, a.err
}

// letters are the answers as they are typed.
var letters = map[byte]string{'y': "yes", 'Y': "yes", 'n': "no", 'N': "no", '-': "none"}

type asker struct {
	in  *bufio.Reader
	out io.Writer
	err error
}

func (a *asker) say(format string, args ...any) { _, _ = fmt.Fprintf(a.out, format, args...) }

// until asks until the answer is one, or nobody answers any more.
func (a *asker) until(question string, good func(string) bool) string {
	for a.err == nil {
		a.say("%s", question)
		line, err := a.in.ReadString('\n')
		if line = strings.TrimSpace(line); good(line) {
			return line
		}
		if err != nil {
			a.err = errors.New("the checklist was not answered to its end")
		}
	}
	return ""
}
