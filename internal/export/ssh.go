package export

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"preflight/inventory"
)

// SSHConfig writes a Host block for each rig, for an Include of ~/.ssh/config (ssh_config(5)).
func SSHConfig(w io.Writer, rigs []*inventory.Rig) error {
	var b strings.Builder
	for i, r := range rigs {
		if i > 0 {
			b.WriteByte('\n')
		}
		host, port := address(r)
		fmt.Fprintf(&b, "Host %s\n", r.Name)
		option := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "    %s %s\n", name, quoted(value))
			}
		}
		if host != r.Name {
			option("HostName", host)
		}
		if port != 0 {
			option("Port", strconv.Itoa(port))
		}
		option("User", r.SSH.User)
		for _, f := range r.SSH.IdentityFiles {
			option("IdentityFile", f)
		}
		option("ProxyJump", r.SSH.JumpHost)
		option("UserKnownHostsFile", r.SSH.KnownHostsFile)
		if r.SSH.ConnectTimeout > 0 {
			option("ConnectTimeout", strconv.Itoa(r.SSH.ConnectTimeout))
		}
		if r.SSH.HostKeys != "" {
			option("StrictHostKeyChecking", map[string]string{"strict": "yes", "accept-new": "accept-new"}[r.SSH.HostKeys])
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// address is where a rig is: its declared address, else its name; the port where one is given.
func address(r *inventory.Rig) (host string, port int) {
	host = r.Address
	if h, p, err := net.SplitHostPort(r.Address); err == nil {
		host = h
		port, _ = strconv.Atoi(p)
	}
	if host == "" {
		host = r.Name
	}
	if r.SSH.Port != 0 {
		port = r.SSH.Port
	}
	return host, port
}

// quoted is an argument of ssh_config: in quotes when it has a space.
func quoted(s string) string {
	if strings.ContainsAny(s, " \t") {
		return `"` + s + `"`
	}
	return s
}
