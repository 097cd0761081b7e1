package checks

// firmware.boot-mode: was the machine started by UEFI?
//
//	UEFI                  pass; with Secure Boot on, a note: the driver's module must be signed
//	legacy BIOS or CSM    warn: Above 4G Decoding and Re-Size BAR want the CSM off
//	not known             unknown
//
// /sys/firmware/efi is there exactly when the kernel was started by UEFI (or `noefi` hides it). A module that Secure
// Boot refused is driver.loaded's to judge.
var firmwareBootMode = Check{ID: "firmware.boot-mode", Title: "boot mode", Metal: true, Decide: decideBootMode}

func decideBootMode(s Subject) []Finding {
	b := s.Host.Boot
	uefi, known := b.UEFI.Get()
	switch {
	case !known:
		return []Finding{unknown(rigSubject, "how the machine was started is not in the input").knownBy("give the dmesg of a boot, or a snapshot of the host")}
	case !uefi:
		return []Finding{warn(rigSubject, "started in legacy mode (CSM)").saw("legacy", "UEFI").because(ev(b.UEFI)).fix("firmware.boot-mode/legacy")}
	}
	f := pass(rigSubject, "started by UEFI").saw("UEFI", "UEFI").because(ev(b.UEFI), ev(b.SecureBoot))
	if b.SecureBoot.Value {
		f = f.noting("Secure Boot is on: the driver's module must be signed")
	}
	return []Finding{f}
}
