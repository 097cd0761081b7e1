package rigsim

import (
	"os/exec"
	"slices"
)

func installed(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
