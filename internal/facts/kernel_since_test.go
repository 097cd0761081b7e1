package facts

import "testing"

func TestFirstStamp(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       int64
		known      bool
	}{
		{"from boot", "[    0.000000] Linux version 6.8.0\n[    1.5] x", 0, true},
		{"overwritten", "\n[ 9012.123456] NVRM: x\n", 9012, true},
		{"with levels", "<6>[  812.000001] x", 812, true},
		{"dates alone", "[Tue Dec  1 04:00:00 2026] x", 0, false},
		{"syslog", "Dec  1 04:00:00 rig kernel: [ 9012.123456] x", 0, false},
		{"empty", "\n\n", 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := firstStamp(row.text, "cmd:dmesg.txt")
			if got.Known() != row.known || got.Value != row.want {
				t.Errorf("%+v", got)
			}
		})
	}
}
