//go:build !linux

package rigsim

import "errors"

// dropOverride cannot be done here: simulated rigs with a plain user must then be served by a plain user.
func dropOverride() error {
	return errors.New("a rig with a plain user cannot be served by root on this system")
}
