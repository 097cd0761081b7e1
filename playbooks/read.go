package playbooks

import (
	"context"
	"crypto/rand"
	_ "embed" // the script
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

//go:embed host.sh
var hostScript string

// Runner runs a script as root on a host and gives what it printed. The error is the connection's; the script says itself how
// it went.
type Runner interface {
	Run(ctx context.Context, script []byte) (out []byte, root bool, err error)
}

func newNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// quote makes one word of a shell of any text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// header is what every script begins with.
func header(nonce string) string { return strings.Replace(hostScript, "@NONCE@", nonce, 1) }

// readScript asks for the state of all resources in one round trip. It changes nothing.
func readScript(nonce string, all []Resource) []byte {
	var b strings.Builder
	b.WriteString(header(nonce))
	for i, r := range all {
		switch {
		case r.File != nil:
			fmt.Fprintf(&b, "read_file %d %s\n", i, quote(r.File.Path))
		case r.Package != nil:
			fmt.Fprintf(&b, "read_packages %d", i)
			for _, n := range r.Package.Apt {
				b.WriteString(" " + quote("apt:"+n))
			}
			for _, n := range r.Package.Dnf {
				b.WriteString(" " + quote("dnf:"+n))
			}
			b.WriteByte('\n')
		case r.Unit != nil:
			fmt.Fprintf(&b, "read_unit %d %s\n", i, quote(r.Unit.Name))
		case r.Command != nil:
			fmt.Fprintf(&b, "read_command %d %s\n", i, quote(r.Command.Check))
		}
	}
	b.WriteString("say end\n")
	return []byte(b.String())
}

// Read learns the state of resources from a host. What the host did not say is Missing.
func Read(ctx context.Context, host Runner, all []Resource) ([]State, error) {
	nonce := newNonce()
	out, root, err := host.Run(ctx, readScript(nonce, all))
	if err != nil {
		return nil, err
	}
	if !root {
		return nil, ErrNoRoot
	}
	states := make([]State, len(all))
	for i := range states {
		states[i].Missing = true
	}
	ended := false
	for _, s := range sections(out, nonce) {
		kind, rest, _ := strings.Cut(s.head, " ")
		if kind == "end" {
			ended = true
			continue
		}
		number, args, _ := strings.Cut(rest, " ")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(all) {
			continue // a host's noise
		}
		states[i] = stateOf(kind, args, s.body)
	}
	if !ended {
		return nil, fmt.Errorf("the host broke off while its state was read")
	}
	return states, nil
}

// section is what stands behind one line of the nonce.
type section struct{ head, body string }

func sections(out []byte, nonce string) []section {
	var all []section
	parts := strings.Split("\n"+string(out), "\n"+nonce+" ")
	for _, p := range parts[1:] {
		head, body, _ := strings.Cut(p, "\n")
		all = append(all, section{strings.TrimSpace(head), body})
	}
	return all
}

// stateOf reads one section.
func stateOf(kind, args, body string) State {
	f := strings.Fields(args)
	switch kind {
	case "absent":
		return State{}
	case "odd":
		return State{Exists: true, Odd: true}
	case "file":
		raw, err := hex.DecodeString(strings.Join(strings.Fields(body), ""))
		if err != nil || len(f) < 2 {
			return State{Missing: true}
		}
		return State{Exists: true, Content: string(raw), Mode: f[0], Owner: f[1]}
	case "packages":
		return packageState(f, body)
	case "unit":
		if len(f) < 2 || f[0] == "no-systemd" {
			return State{Missing: true}
		}
		return State{Enabled: f[0], Active: f[1]}
	case "command":
		if len(f) != 1 {
			return State{Missing: true}
		}
		return State{Done: f[0] == "0", Said: strings.TrimSpace(body)}
	}
	return State{Missing: true}
}

func packageState(f []string, body string) State {
	s := State{Have: map[string]string{}, Held: map[string]bool{}}
	if len(f) > 0 {
		s.Manager = f[0]
	}
	for l := range strings.Lines(body) {
		switch w := strings.Fields(l); {
		case len(w) == 4 && w[0] == "have" && w[2] == "installed":
			s.Have[w[1]] = w[3]
		case len(w) == 2 && w[0] == "held":
			s.Held[w[1]] = true
		}
	}
	return s
}
