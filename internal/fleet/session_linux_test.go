package fleet

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"preflight/internal/collect"
	"preflight/internal/remote"
	"preflight/internal/rigsim"
	"preflight/inventory"
)

// A script must run in a session of its own, whether here or on a simulated rig: with the terminal of preflight as its
// controlling terminal, a shell that turns job control on is stopped and the run never ends.
func TestScriptsHaveNoTerminal(t *testing.T) {
	const script = "set -- $(cat /proc/$$/stat); echo session $6 terminal $7; cat /proc/$$/stat >/dev/null"
	rigs, err := rigsim.Serve(t.Context(), t.TempDir(), rigsim.Healthy("two", 2))
	if err != nil {
		t.Fatal(err)
	}
	defer rigs.Close()
	inv, diags := inventory.Load(rigs.InventoryPath, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	d := remote.New(remote.Options{Home: t.TempDir(), ConfigFiles: []string{}})
	defer d.Close()
	h, err := d.Dial(t.Context(), inv.Rigs[0])
	if err != nil {
		t.Fatal(err)
	}
	ours, err := sessionOf("self")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]collect.Runner{"here": collect.Shell{}, "simulated rig": overSSH{h}} {
		var out bytes.Buffer
		if _, err := r.Run(t.Context(), []byte(script+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(out.String())
		if len(f) < 4 || f[1] == ours || f[3] != "0" {
			t.Errorf("%s: %q; this process is in session %s", name, out.String(), ours)
		}
	}
}

// sessionOf is the session id of a process, field 6 of its stat file (proc(5)).
func sessionOf(pid string) (string, error) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(raw), ") ")
	return strings.Fields(after)[3], nil
}
