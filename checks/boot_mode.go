package checks

import (
	"slices"
	"strings"
)

// firmware.boot-mode: was the machine started by UEFI?
//
//	UEFI                  pass; with Secure Boot on, a note: the driver's module must be signed
//	legacy BIOS or CSM    warn: Above 4G Decoding and Re-Size BAR want the CSM off
//	no UEFI, and no x86   skip: such machines have no CSM
//	not known             unknown
//
// /sys/firmware/efi is there exactly when the kernel was started by UEFI, unless `noefi` or `efi=noruntime` hides it. A
// module that Secure Boot refused is driver.loaded's to judge.
var firmwareBootMode = Check{ID: "firmware.boot-mode", Title: "boot mode", Metal: true, Decide: decideBootMode}

func decideBootMode(s Subject) []Finding {
	b := s.Host.Boot
	uefi, known := b.UEFI.Get()
	switch {
	case !known:
		return []Finding{unknown(rigSubject, "how the machine was started is not in the input").knownBy("give the dmesg of a boot, or a snapshot of the host")}
	case !uefi && s.Host.OS.Arch.Known() && !slices.Contains([]string{"x86_64", "amd64", "i686"}, s.Host.OS.Arch.Value):
		return []Finding{skip(rigSubject, "%s without UEFI: there is no CSM to switch off", s.Host.OS.Arch.Value).because(ev(b.UEFI), ev(s.Host.OS.Arch))}
	case !uefi && slices.ContainsFunc(strings.Fields(s.Host.OS.Cmdline.Value), func(word string) bool { return word == "noefi" || word == "efi=noruntime" }):
		return []Finding{unknown(rigSubject, "the kernel's command line hides UEFI").because(ev(s.Host.OS.Cmdline)).knownBy("start once without noefi and efi=noruntime")}
	case !uefi:
		return []Finding{warn(rigSubject, "started in legacy mode (CSM)").saw("legacy", "UEFI").because(ev(b.UEFI)).fix("firmware.boot-mode/legacy")}
	}
	f := pass(rigSubject, "started by UEFI").saw("UEFI", "UEFI").because(ev(b.UEFI), ev(b.SecureBoot))
	if b.SecureBoot.Value {
		f = f.noting("Secure Boot is on: the driver's module must be signed")
	}
	return []Finding{f}
}
