package main

import (
	"testing"

	"preflight/internal/catalog"
	"preflight/internal/lang"
)

// Names and causes of Xids come from the catalogue into findings, where readers of Chinese meet them.
func TestEveryXidHasChinese(t *testing.T) {
	for _, x := range catalog.MustLoad().Xids() {
		for _, s := range []string{x.Name, x.Cause} {
			if !lang.Zh.Speaks(s) {
				t.Errorf("Xid %d: no Chinese for %q", x.Number, s)
			}
		}
	}
}
