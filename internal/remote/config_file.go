package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kevinburke/ssh_config"
)

// flattener reads ssh_config for one host: it follows Include, decides Host and Match as they are met, and keeps the
// lines of blocks that apply. The library reads those; it knows Match only in part, and would refuse the whole file.
type flattener struct {
	d         *Dialer
	alias     string // as given
	host      string // after HostName
	user      string
	userGiven bool
	hostSet   bool
	lines     []string
}

const (
	includeDepth = 16
	execDeadline = 10 * time.Second
)

// file reads one file. An active of false means that the enclosing block does not apply, so nothing in it does.
func (f *flattener) file(path string, depth int, active bool) error {
	if depth > includeDepth {
		return fmt.Errorf("%s: Include is nested more than %d deep", path, includeDepth)
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	outer := active
	for n, line := range strings.Split(string(raw), "\n") {
		key, value := keyword(line)
		switch key {
		case "":
			continue
		case "host":
			active, err = f.hostBlock(value)
			active = active && outer
		case "match":
			active = outer
			if outer {
				active, err = f.match(value)
			}
		case "include":
			err = f.include(path, value, depth, active)
		default:
			if active {
				f.keep(key, value, line)
			}
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
	}
	return nil
}

// keyword splits a line into its lower-case keyword and the rest; "=" may stand between them.
func keyword(line string) (key, value string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", ""
	}
	i := strings.IndexAny(line, " \t=")
	if i < 0 {
		return strings.ToLower(line), ""
	}
	return strings.ToLower(line[:i]), strings.TrimLeft(line[i:], " \t=")
}

func (f *flattener) hostBlock(patterns string) (bool, error) {
	return matches(strings.Fields(strings.ReplaceAll(patterns, `"`, "")), f.alias)
}

// matches applies a pattern list as ssh_config(5) has it: one negated hit excludes, else any hit includes.
func matches(patterns []string, s string) (bool, error) {
	h := ssh_config.Host{}
	for _, p := range patterns {
		pat, err := ssh_config.NewPattern(p)
		if err != nil {
			return false, err
		}
		h.Patterns = append(h.Patterns, pat)
	}
	return h.Matches(s), nil
}

// match decides a Match line: all its criteria must hold; "!" negates one.
func (f *flattener) match(line string) (bool, error) {
	words := splitQuoted(line)
	if len(words) == 0 {
		return false, errors.New("Match needs at least one criterion") //nolint:staticcheck // the keyword's own spelling
	}
	for i := 0; i < len(words); i++ {
		name, negate := strings.ToLower(words[i]), false
		if strings.HasPrefix(name, "!") {
			name, negate = name[1:], true
		}
		var ok bool
		switch name {
		case "all":
			ok = true
		case "canonical", "final":
			ok = false // host names are not canonicalised here, so there is no second pass
		default:
			i++
			if i >= len(words) {
				return false, fmt.Errorf("Match %s needs a value", name)
			}
			var err error
			if ok, err = f.criterion(name, words[i]); err != nil {
				return false, err
			}
		}
		if ok == negate {
			return false, nil
		}
	}
	return true, nil
}

func (f *flattener) criterion(name, value string) (bool, error) {
	subject := map[string]string{"host": f.host, "originalhost": f.alias, "user": f.user, "localuser": f.d.o.LocalUser}
	if s, ok := subject[name]; ok {
		return matches(strings.Split(value, ","), s)
	}
	switch name {
	case "exec":
		ctx, cancel := context.WithTimeout(context.Background(), execDeadline)
		defer cancel()
		t := settings{alias: f.alias, host: f.host, user: f.user, port: "22"}
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", t.tokens(value, f.d))
		cmd.WaitDelay = time.Second
		return cmd.Run() == nil, nil
	case "localnetwork", "tagged", "version", "sessiontype", "command":
		f.d.warnOnce("ssh_config: Match " + name + " is not honoured, its block is left out")
		return false, nil
	}
	return false, fmt.Errorf("Match %s is not a criterion that ssh_config(5) knows", name)
}

func (f *flattener) include(from, value string, depth int, active bool) error {
	if !active {
		return nil
	}
	for _, p := range strings.Fields(strings.ReplaceAll(value, `"`, "")) {
		switch {
		case strings.HasPrefix(p, "~/"):
			p = filepath.Join(f.d.o.Home, p[2:])
		case !filepath.IsAbs(p):
			p = filepath.Join(filepath.Dir(from), p)
		}
		files, err := filepath.Glob(p)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := f.file(file, depth+1, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep notes a line that applies, and what later Match lines are compared with: the first value of a keyword wins.
func (f *flattener) keep(key, value, line string) {
	switch key {
	case "hostname":
		if !f.hostSet {
			f.host, f.hostSet = strings.ReplaceAll(strings.Trim(value, `"`), "%h", f.alias), true
		}
	case "user":
		if !f.userGiven {
			f.user, f.userGiven = strings.Trim(value, `"`), true
		}
	default:
		if !honoured[key] && !harmless[key] {
			f.d.warnOnce("ssh_config: " + strings.Fields(line)[0] + " is not honoured by preflight")
		}
	}
	if honoured[key] {
		f.lines = append(f.lines, "  "+strings.TrimSpace(line))
	}
}

// splitQuoted splits at spaces outside double quotes.
func splitQuoted(s string) []string {
	var out []string
	var word strings.Builder
	quoted, any := false, false
	for _, r := range s {
		switch {
		case r == '"':
			quoted, any = !quoted, true
		case (r == ' ' || r == '\t') && !quoted:
			if word.Len() > 0 || any {
				out = append(out, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
		}
	}
	if word.Len() > 0 || any {
		out = append(out, word.String())
	}
	return out
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var (
	// honoured keywords change how a host is reached here, as they do in OpenSSH.
	honoured = set(`hostname hostkeyalias user port identityfile identityagent identitiesonly certificatefile proxyjump proxycommand
		userknownhostsfile globalknownhostsfile stricthostkeychecking connecttimeout`)
	// harmless keywords are about interactive use, multiplexing or looks: leaving them out changes nothing that matters.
	harmless = set(`addkeystoagent addressfamily batchmode checkhostip clearallforwardings compression connectionattempts controlmaster
		controlpath controlpersist dynamicforward enableescapecommandline escapechar exitonforwardfailure fingerprinthash forkafterauthentication
		forwardagent forwardx11 forwardx11timeout forwardx11trusted gatewayports hashknownhosts ignoreunknown ipqos kbdinteractiveauthentication
		challengeresponseauthentication localcommand localforward loglevel logverbose nohostauthenticationforlocalhost numberofpasswordprompts
		obscurekeystroketiming passwordauthentication permitlocalcommand permitremoteopen preferredauthentications pubkeyauthentication rekeylimit
		remotecommand remoteforward requesttty requiredrsasize sendenv serveralivecountmax serveraliveinterval sessiontype setenv stdinnull
		streamlocalbindmask streamlocalbindunlink syslogfacility tcpkeepalive updatehostkeys usekeychain verifyhostkeydns visualhostkey
		xauthlocation tag canonicaldomains canonicalizefallbacklocal canonicalizehostname canonicalizemaxdots canonicalizepermittedcnames
		hostkeyalgorithms kexalgorithms ciphers macs pubkeyacceptedalgorithms pubkeyacceptedkeytypes casignaturealgorithms hostbasedauthentication`)
)
