//go:build linux

package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"

	"preflight/internal/probe/wire"
)

// discover loads libcuda, initialises it and lists the cards. It takes no card into use.
func (s *session) discover() error {
	s.cu = &cuda{}
	err := s.phase(wire.Line{Phase: wire.PhaseLoadCUDA}, func(end *wire.Line) error {
		lib, from, err := open("cuda", wire.KeyNoLibCUDA, findCUDA(disk{}, s.job.Request))
		if err != nil {
			return err
		}
		if err := bind(lib, "cuda", s.cu.symbols()); err != nil {
			return err
		}
		var v int32
		if s.cu.version(&v) == cudaSuccess && v > 0 {
			from.Version = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
		}
		end.Library = &from
		return nil
	})
	if err != nil {
		return err
	}
	err = s.phase(wire.Line{Phase: wire.PhaseCUDAInit}, func(*wire.Line) error {
		return s.cu.check("cuInit", s.cu.initialise(0))
	})
	if err != nil {
		return err
	}
	return s.phase(wire.Line{Phase: wire.PhaseDevices}, func(*wire.Line) error { return s.devices() })
}

func (s *session) devices() error {
	var n int32
	if err := s.cu.check("cuDeviceGetCount", s.cu.deviceCount(&n)); err != nil {
		return err
	}
	if n == 0 {
		return &wire.Error{Key: wire.KeyNoDevice, API: "cuda", Call: "cuDeviceGetCount", Text: "CUDA shows no card"}
	}
	handles := make([]int32, n)
	for i := range handles {
		d, err := s.device(i, &handles[i])
		if err != nil {
			return err
		}
		s.all = append(s.all, d)
	}
	for i, dev := range handles {
		for j, peer := range handles {
			var yes int32
			if i != j && s.cu.canAccess(&yes, dev, peer) == cudaSuccess && yes != 0 {
				s.all[i].Peers = append(s.all[i].Peers, j)
			}
		}
	}
	addNVML(s.all)
	return nil
}

func (s *session) device(ordinal int, dev *int32) (wire.Device, error) {
	d := wire.Device{Ordinal: ordinal}
	if err := s.cu.check("cuDeviceGet", s.cu.deviceGet(dev, int32(ordinal))); err != nil {
		return d, err
	}
	var text [256]byte
	if err := s.cu.check("cuDeviceGetName", s.cu.deviceName(&text[0], int32(len(text)-1), *dev)); err != nil {
		return d, err
	}
	d.Name = cString(&text[0])
	text = [256]byte{}
	if err := s.cu.check("cuDeviceGetPCIBusId", s.cu.deviceBus(&text[0], int32(len(text)-1), *dev)); err != nil {
		return d, err
	}
	d.BDF = deviceBDF(cString(&text[0]))
	if err := s.cu.check("cuDeviceTotalMem", s.cu.deviceMemory(&d.Total, *dev)); err != nil {
		return d, err
	}
	values := map[int32]int32{attrComputeMode: 0, attrMajor: 0, attrMinor: 0}
	for what := range values {
		var v int32
		if err := s.cu.check("cuDeviceGetAttribute", s.cu.attribute(&v, what, *dev)); err != nil {
			return d, err
		}
		values[what] = v
	}
	d.ComputeMode = int(values[attrComputeMode])
	d.Capability = fmt.Sprintf("%d.%d", values[attrMajor], values[attrMinor])
	d.MIG = strings.Contains(d.Name, " MIG ") // "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
	return d, nil
}

// hello tells what there is, and which libnccl would be used also where there is no card. A host without libnccl is
// told so and is no failure: bandwidths can be measured.
func (s *session) hello() {
	s.say(wire.Line{Phase: wire.PhaseDevices, State: wire.StateResult, Hello: &wire.Hello{
		Protocol: wire.Protocol, Arch: runtime.GOARCH, Driver: moduleVersion(), Env: s.job.Login,
		Devices: append([]wire.Device{}, s.all...), Found: existing(disk{}, findNCCL(disk{}, s.job.Request)),
	}})
	_, _ = s.loadNCCL() // told as a phase
}

// moduleWords picks the version out of /proc/driver/nvidia/version.
var moduleWords = regexp.MustCompile(`(?m)^NVRM version: .*?\s(\d+\.\d+(?:\.\d+)?)\s`)

// moduleVersion is the version of the loaded kernel module.
func moduleVersion() string {
	if raw, err := os.ReadFile("/sys/module/nvidia/version"); err == nil {
		return strings.TrimSpace(string(raw))
	}
	raw, _ := os.ReadFile("/proc/driver/nvidia/version")
	if m := moduleWords.FindStringSubmatch(string(raw)); m != nil {
		return m[1]
	}
	return ""
}
