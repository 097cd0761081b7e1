//go:build linux

package main

import (
	"github.com/ebitengine/purego"

	"preflight/internal/probe/wire"
)

// nvml is what CUDA cannot tell without taking a card into use: free memory, and whether MIG is on. nvml.h:
// nvmlMemory_t is three 64-bit numbers, total, free and used.
type nvml struct {
	initialise func() int32
	shutdown   func() int32
	byBus      func(bdf string, device *uintptr) int32
	memory     func(device uintptr, totalFreeUsed *[3]uint64) int32
	mig        func(device uintptr, current, pending *uint32) int32
}

// addNVML completes the cards. A host without NVML, as some containers are, leaves the fields absent.
func addNVML(all []wire.Device) {
	lib, err := purego.Dlopen("libnvidia-ml.so.1", purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return
	}
	n := &nvml{}
	table := []symbol{
		{name: "nvmlInit_v2", fn: &n.initialise},
		{name: "nvmlShutdown", fn: &n.shutdown},
		{name: "nvmlDeviceGetHandleByPciBusId_v2", fn: &n.byBus},
		{name: "nvmlDeviceGetMemoryInfo", fn: &n.memory},
		{name: "nvmlDeviceGetMigMode", fn: &n.mig, optional: true}, // drivers before 450 have none
	}
	if bind(lib, "nvidia-ml", table) != nil || n.initialise() != 0 {
		return
	}
	defer n.shutdown()
	for i := range all {
		d := &all[i]
		var device uintptr
		if n.byBus(d.BDF, &device) != 0 {
			continue
		}
		var m [3]uint64
		if n.memory(device, &m) == 0 {
			d.Free = m[1]
		}
		var current, pending uint32
		if n.mig != nil && n.mig(device, &current, &pending) == 0 && current == 1 {
			d.MIG = true
		}
	}
}
