package probe

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"fmt"
	"io"
)

//go:embed helper
var helpers embed.FS

// helperLimit bounds an unpacked helper, bytes.
const helperLimit = 32 << 20

// architectures maps what uname -m prints to Go's names.
var architectures = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// Helper is the native helper for a machine as uname -m names it, with its SHA-256 in hex. The error says why there is
// none: an architecture that it does not run on, or a controller that was built without it.
func Helper(machine string) (program []byte, sum string, err error) {
	arch, ok := architectures[machine]
	if !ok {
		return nil, "", fmt.Errorf("the native helper does not run on %s", machine)
	}
	packed, err := helpers.ReadFile("helper/linux-" + arch + ".gz")
	if err != nil {
		return nil, "", fmt.Errorf("this preflight was built without the native helper for %s (make build puts it in)", arch)
	}
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, "", fmt.Errorf("the native helper for %s is damaged: %w", arch, err)
	}
	if program, err = io.ReadAll(io.LimitReader(zr, helperLimit)); err != nil {
		return nil, "", fmt.Errorf("the native helper for %s is damaged: %w", arch, err)
	}
	return program, fmt.Sprintf("%x", sha256.Sum256(program)), nil
}

// Embedded says whether a helper for an architecture (amd64, arm64) was built in.
func Embedded(arch string) bool {
	_, err := helpers.ReadFile("helper/linux-" + arch + ".gz")
	return err == nil
}
