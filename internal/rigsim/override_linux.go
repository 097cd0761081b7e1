package rigsim

import "golang.org/x/sys/unix"

// dropOverride takes from the calling thread, and from what it starts, root's right to ignore file modes.
func dropOverride() error {
	for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return err
		}
	}
	return nil
}
