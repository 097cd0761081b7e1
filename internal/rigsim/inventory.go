package rigsim

import (
	"fmt"
	"net"
	"strings"
)

// inventoryText is the rigs.hcl that declares the served rigs as their owner would.
func inventoryText(f *Fleet, machines []*machine) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Simulated rigs on loopback.\nssh {\n  known_hosts_file = %q\n  identity_files   = [%q]\n}\n", f.KnownHosts, f.KeyPath)
	for i, m := range machines {
		b.WriteString("\n" + m.declaration(f.Rigs[i]))
	}
	return b.String()
}

func (m *machine) declaration(r Rig) string {
	host, port, _ := net.SplitHostPort(r.Addr)
	var b strings.Builder
	fmt.Fprintf(&b, "rig %q {\n  address = %q\n  cards   = %d\n  gpu     = %q\n", m.Name, host, m.Declared, m.GPU)
	fmt.Fprintf(&b, "\n  ssh {\n    user = %q\n    port = %s\n  }\n", r.User, port)
	fmt.Fprintf(&b, "\n  psu {\n    watts = %d\n    count = %d\n", m.DeclaredW, m.PSUs)
	if m.Spare > 0 {
		fmt.Fprintf(&b, "    spare = %d\n", m.Spare)
	}
	fmt.Fprintf(&b, "  }\n\n  mains {\n    volts    = 230\n    amps     = %d\n    circuits = %d\n  }\n", m.Amps, m.Circuits)
	fmt.Fprintf(&b, "\n  chassis {\n    cooling = %q\n    mount   = %q\n", m.Cooling, m.Mount)
	if m.Mount == "slot" {
		thickness := 3
		if m.Cooling == "blower" {
			thickness = 2
		}
		for i, c := range m.onBus() {
			fmt.Fprintf(&b, "\n    slot \"%d\" {\n      card      = %q\n      thickness = %d\n    }\n", 1+i*m.SlotStep, c.BDF, thickness)
		}
	}
	b.WriteString("  }\n}\n")
	return b.String()
}
