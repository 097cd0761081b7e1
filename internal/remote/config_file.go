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
	proxySet  bool // ProxyJump or ProxyCommand: whichever comes first
	final     bool // the second pass, for Match final
	wantFinal bool
	lines     []string
}

// systemConfig is read after the user's own file; what distributions put there by default is no choice of the user.
const systemConfig = "/etc/ssh/ssh_config"

const (
	includeDepth = 16
	execDeadline = 10 * time.Second
)

// file reads one file. All of it is for hosts that its includer's block applies to.
func (f *flattener) file(path string, depth int, system bool) error {
	if depth > includeDepth {
		return fmt.Errorf("%s: Include is nested more than %d deep", path, includeDepth)
	}
	raw, err := f.d.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	active := true
	for n, line := range strings.Split(string(raw), "\n") {
		key, value := keyword(line)
		switch key {
		case "":
			continue
		case "host":
			active, err = f.hostBlock(value)
		case "match":
			active, err = f.match(value)
		case "include":
			if active {
				err = f.include(value, depth, system)
			}
		default:
			if active {
				f.keep(key, value, system)
			}
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
	}
	return nil
}

// readFile reads a file once in a run, as it is needed for each host.
func (d *Dialer) readFile(path string) ([]byte, error) {
	if raw, ok := d.files.Load(path); ok {
		return raw.([]byte), nil
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		d.files.Store(path, raw)
	}
	return raw, err
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
	value = strings.TrimLeft(line[i:], " \t")
	value = strings.TrimLeft(strings.TrimPrefix(value, "="), " \t")
	return strings.ToLower(line[:i]), value
}

func (f *flattener) hostBlock(patterns string) (bool, error) {
	name := f.alias
	if f.final {
		name = f.host
	}
	return matches(splitQuoted(patterns), name)
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
		return false, errors.New("a Match line needs at least one criterion")
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
		case "canonical": // host names are not canonicalised here
		case "final":
			f.wantFinal, ok = true, f.final
		case "localnetwork", "tagged", "version", "sessiontype", "command":
			f.d.warnOnce("ssh_config: Match " + name + " is not honoured, its block is left out")
			return false, nil
		default:
			i++
			if i >= len(words) {
				return false, fmt.Errorf("`Match %s` needs a value", name)
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
	if name == "exec" {
		ctx, cancel := context.WithTimeout(context.Background(), execDeadline)
		defer cancel()
		t := settings{alias: f.alias, host: f.host, user: f.user, port: "22"}
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", t.tokens(value, f.d))
		cmd.WaitDelay = time.Second
		return cmd.Run() == nil, nil
	}
	return false, fmt.Errorf("`Match %s` is not a criterion that ssh_config(5) knows", name)
}

// include reads further files; a relative name lies in ~/.ssh, or in /etc/ssh for the system's file.
func (f *flattener) include(value string, depth int, system bool) error {
	base := filepath.Join(f.d.o.Home, ".ssh")
	if system {
		base = filepath.Dir(systemConfig)
	}
	for _, p := range splitQuoted(value) {
		switch {
		case strings.HasPrefix(p, "~/"):
			p = filepath.Join(f.d.o.Home, p[2:])
		case !filepath.IsAbs(p):
			p = filepath.Join(base, p)
		}
		files, err := filepath.Glob(p)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := f.file(file, depth+1, system); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep notes a line that applies, and what later Match lines are compared with: the first value of a keyword wins.
func (f *flattener) keep(key, value string, system bool) {
	switch key {
	case "hostname":
		if !f.hostSet {
			f.host, f.hostSet = strings.ReplaceAll(unquote(value), "%h", f.alias), true
		}
	case "user":
		if !f.userGiven {
			f.user, f.userGiven = unquote(value), true
		}
	case "proxyjump", "proxycommand":
		if f.proxySet {
			return
		}
		f.proxySet = true
	}
	switch {
	case honoured[key]:
		f.lines = append(f.lines, "  "+key+" "+value)
	case harmless[key], system && shipped[key], strings.EqualFold(value, "no"), strings.EqualFold(value, "none"):
	default:
		f.d.warnOnce("ssh_config: " + pick(spelled[key], key) + " is not honoured by preflight")
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
		userknownhostsfile globalknownhostsfile stricthostkeychecking connecttimeout batchmode passwordauthentication pubkeyauthentication
		kbdinteractiveauthentication challengeresponseauthentication`)
	// harmless keywords are about interactive use, multiplexing or looks: leaving them out changes nothing that matters.
	harmless = set(`addkeystoagent addressfamily checkhostip clearallforwardings compression connectionattempts controlmaster
		controlpath controlpersist dynamicforward enableescapecommandline escapechar exitonforwardfailure fingerprinthash forkafterauthentication
		forwardagent forwardx11 forwardx11timeout forwardx11trusted gatewayports hashknownhosts ignoreunknown ipqos
		localcommand localforward loglevel logverbose nohostauthenticationforlocalhost numberofpasswordprompts
		obscurekeystroketiming permitlocalcommand permitremoteopen preferredauthentications rekeylimit
		remotecommand remoteforward requesttty requiredrsasize sendenv serveralivecountmax serveraliveinterval sessiontype setenv stdinnull
		streamlocalbindmask streamlocalbindunlink syslogfacility tcpkeepalive updatehostkeys usekeychain verifyhostkeydns visualhostkey
		xauthlocation tag`)
	// shipped keywords stand in the system's file of common distributions; there they are nobody's choice.
	shipped = set(`gssapiauthentication gssapidelegatecredentials gssapikeyexchange gssapikexalgorithms hostkeyalgorithms kexalgorithms ciphers macs
		pubkeyacceptedalgorithms pubkeyacceptedkeytypes casignaturealgorithms hostbasedauthentication`)
	// spelled gives the usual spelling of keywords that people look for when they are named.
	spelled = map[string]string{
		"gssapiauthentication": "GSSAPIAuthentication", "pkcs11provider": "PKCS11Provider", "securitykeyprovider": "SecurityKeyProvider",
		"hostkeyalgorithms": "HostKeyAlgorithms", "kexalgorithms": "KexAlgorithms", "ciphers": "Ciphers", "macs": "MACs",
		"canonicalizehostname": "CanonicalizeHostname", "bindaddress": "BindAddress", "bindinterface": "BindInterface",
		"knownhostscommand": "KnownHostsCommand", "proxyusefdpass": "ProxyUseFdpass", "revokedhostkeys": "RevokedHostKeys",
		"pubkeyacceptedalgorithms": "PubkeyAcceptedAlgorithms", "hostbasedauthentication": "HostbasedAuthentication",
	}
)
