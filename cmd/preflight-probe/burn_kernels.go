//go:build linux

package main

import (
	_ "embed" // the kernels
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"preflight/internal/probe/wire"
)

// The kernels are PTX text, which the driver itself translates for its card: no toolkit and no cuBLAS is needed.
var (
	//go:embed kernels/memory.ptx
	memoryPTX string
	//go:embed kernels/fma.ptx
	fmaPTX string
	//go:embed kernels/mma75.ptx
	mma75PTX string
	//go:embed kernels/mma80.ptx
	mma80PTX string
)

// arithmetic is one kind of load, best first: which cards have it, and what a thread computes in one iteration. One multiply-add
// counts as two operations.
var arithmetic = []struct {
	name  string
	text  string
	least float64 // compute capability
	flops float64 // a thread and iteration
}{
	{"mma80", mma80PTX, 8.0, 4 * 2 * 16 * 8 * 16 / 32}, // four m16n8k16 a warp
	{"mma75", mma75PTX, 7.5, 4 * 2 * 16 * 8 * 8 / 32},  // four m16n8k8
	{"fma", fmaPTX, 0, 16 * 2},
}

// kernels are a card's functions.
type kernels struct {
	name                       string
	flops                      float64 // a thread and iteration
	burn, fill, check, compare uintptr
}

// kernels loads the memory's kernels, and the best arithmetic that the card and its driver take.
func (s *session) kernels(c *card) (kernels, error) {
	var k kernels
	memory, err := s.module(memoryPTX)
	if err != nil {
		return k, err
	}
	for name, to := range map[string]*uintptr{"burn_fill": &k.fill, "burn_check": &k.check, "burn_compare": &k.compare} {
		if *to, err = s.kernel(memory, name); err != nil {
			return k, err
		}
	}
	capability, _ := strconv.ParseFloat(c.Capability, 64)
	for _, a := range arithmetic {
		if capability < a.least {
			continue
		}
		var module uintptr
		if module, err = s.module(a.text); err == nil {
			k.name, k.flops = a.name, a.flops
			k.burn, err = s.kernel(module, "burn")
			return k, err
		}
		if asError(err).Key != wire.KeyPTX {
			return k, err
		}
	}
	return k, err
}

// module has the driver translate a text. Later drivers may refuse the target of an old card: the same text serves a newer one.
func (s *session) module(text string) (uintptr, error) {
	var m uintptr
	image := append([]byte(text), 0)
	err := s.cu.check("cuModuleLoadData", s.cu.moduleLoad(&m, &image[0]))
	if err != nil && asError(err).Key == wire.KeyPTX && strings.Contains(text, ".target sm_50") {
		text = strings.Replace(text, ".target sm_50", ".target sm_75", 1)
		image = append([]byte(strings.Replace(text, ".version 6.0", ".version 6.3", 1)), 0) // sm_75 came with PTX 6.3
		err = s.cu.check("cuModuleLoadData", s.cu.moduleLoad(&m, &image[0]))
	}
	return m, err
}

func (s *session) kernel(module uintptr, name string) (uintptr, error) {
	var f uintptr
	text := append([]byte(name), 0)
	return f, s.cu.check("cuModuleGetFunction", s.cu.moduleKernel(&f, module, &text[0]))
}

// block is the number of threads of a block; the kernels' tables of results are one word a thread.
const block = 256

// enqueue puts a kernel into a stream. The driver copies the arguments while it is called; each is read with the width that the
// kernel declares, and a word of 64 bits begins with its low half.
func (s *session) enqueue(kernel uintptr, blocks uint32, stream uintptr, args ...uint64) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	values, pointers := make([]uint64, len(args)), make([]unsafe.Pointer, len(args))
	copy(values, args)
	pin.Pin(&values[0])
	pin.Pin(&pointers[0])
	for i := range values {
		pointers[i] = unsafe.Pointer(&values[i])
	}
	return s.cu.check("cuLaunchKernel", s.cu.launch(kernel, blocks, 1, 1, block, 1, 1, 0, stream, unsafe.Pointer(&pointers[0]), nil))
}

// burnable says which function of the driver is missing for a burn.
func (s *session) burnable() error {
	for name, missing := range map[string]bool{
		"cuMemGetInfo_v2": s.cu.memoryInfo == nil, "cuModuleLoadData": s.cu.moduleLoad == nil,
		"cuModuleGetFunction": s.cu.moduleKernel == nil, "cuLaunchKernel": s.cu.launch == nil,
	} {
		if missing {
			return &wire.Error{Key: wire.KeyMissingSymbol, API: "cuda", Call: name, Text: "libcuda has no " + name}
		}
	}
	return nil
}
