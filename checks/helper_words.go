package checks

// measuring is what stands in the way of a measurement, by the helper's key: a state of the host that is no fault of
// its cards, with its own sentence and what would make a verdict possible.
var measuring = map[string]struct{ text, known string }{
	"no-libcuda":       {"libcuda.so.1 is not there: the driver's libraries are missing, or this is a container without them", "install the driver's libraries (libnvidia-compute, nvidia-driver-cuda-libs), or start the container with the NVIDIA runtime"},
	"stub-library":     {"the libcuda.so.1 that is found first is the CUDA toolkit's stub", "take its folder out of LD_LIBRARY_PATH"},
	"cannot-load":      {"a library of the driver or of NCCL is there, and does not load", "see what the evidence says is missing, and install it"},
	"no-device":        {"CUDA sees no card", "mend driver.loaded or gpu.count first"},
	"driver-mismatch":  {"kernel module and libcuda are of two versions (CUDA 803)", "reboot, or reload the module, after an update of the driver"},
	"system-not-ready": {"the NVSwitch fabric is not up (CUDA 802)", "start the fabric manager of the driver's own version"},
	"busy":             {"a card is busy or not available (CUDA 46)", "end what uses it, and run the check again"},
	"exclusive":        {"a card is in exclusive compute mode, and taken", "end what uses it, or nvidia-smi -c 0"},
	"prohibited":       {"a card is in prohibited compute mode", "nvidia-smi -c 0"},
	"mig":              {"a card is split by MIG: its parts cannot reduce with other cards", "measure with MIG off, where the site allows it"},
	"mps":              {"the MPS service does not answer", "restart or stop nvidia-cuda-mps-control"},
	"one-card":         {"one card is visible to the login", "see what hides the others: CUDA_VISIBLE_DEVICES, a container, a cgroup"},
	"no-libnccl":       {"no libnccl.so.2 was found: not in the loader's path, not in CUDA's folders, not in a Python", "install NCCL or torch on the rig, or name its Python: `python` in rigs.hcl"},
	"old-nccl":         {"the libnccl that was found is too old for the helper", "install a newer NCCL, or --engine nccl-tests"},
}

// hindered is a finding about a key that stands in the way; false for any other.
func hindered(key string, evidence ...Evidence) (Finding, bool) {
	m, ok := measuring[key]
	if !ok {
		return Finding{}, false
	}
	return unknown(rigSubject, "%s", m.text).knownBy(m.known).because(evidence...), true
}
