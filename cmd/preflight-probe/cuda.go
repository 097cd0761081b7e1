//go:build linux

package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"preflight/internal/probe/wire"
)

// cuda is what the helper uses of the driver API, by the names of the 64-bit ABI: the names without _v2 are the
// 32-bit functions of 2009. Handles are addresses; a device is an int; a CUdeviceptr is 64 bits wide.
type cuda struct {
	initialise   func(flags uint32) int32
	version      func(v *int32) int32
	deviceCount  func(n *int32) int32
	deviceGet    func(dev *int32, ordinal int32) int32
	deviceName   func(name *byte, size, dev int32) int32
	deviceBus    func(id *byte, size, dev int32) int32
	deviceMemory func(bytes *uint64, dev int32) int32
	attribute    func(value *int32, what, dev int32) int32
	canAccess    func(yes *int32, dev, peer int32) int32

	retain     func(ctx *uintptr, dev int32) int32
	setCurrent func(ctx uintptr) int32
	enablePeer func(ctx uintptr, flags uint32) int32

	alloc     func(ptr *uint64, bytes uint64) int32
	hostAlloc func(ptr *unsafe.Pointer, bytes uint64, flags uint32) int32

	toCard   func(dst uint64, src unsafe.Pointer, bytes uint64, stream uintptr) int32
	fromCard func(dst unsafe.Pointer, src, bytes uint64, stream uintptr) int32
	peer     func(dst uint64, dstCtx uintptr, src uint64, srcCtx uintptr, bytes uint64, stream uintptr) int32
	set32    func(dst uint64, value uint32, count uint64, stream uintptr) int32

	streamCreate func(stream *uintptr, flags uint32) int32
	streamWait   func(stream, event uintptr, flags uint32) int32
	eventCreate  func(event *uintptr, flags uint32) int32
	eventRecord  func(event, stream uintptr) int32
	eventQuery   func(event uintptr) int32
	elapsed      func(ms *float32, start, end uintptr) int32

	memoryInfo   func(free, total *uint64) int32
	moduleLoad   func(module *uintptr, text *byte) int32
	moduleKernel func(kernel *uintptr, module uintptr, name *byte) int32
	launch       func(kernel uintptr, gridX, gridY, gridZ, blockX, blockY, blockZ, shared uint32, stream uintptr, params, extra unsafe.Pointer) int32

	errorName func(code int32, text **byte) int32
	errorText func(code int32, text **byte) int32
}

func (c *cuda) symbols() []symbol {
	return []symbol{
		{name: "cuInit", fn: &c.initialise},
		{name: "cuDriverGetVersion", fn: &c.version},
		{name: "cuDeviceGetCount", fn: &c.deviceCount},
		{name: "cuDeviceGet", fn: &c.deviceGet},
		{name: "cuDeviceGetName", fn: &c.deviceName},
		{name: "cuDeviceGetPCIBusId", fn: &c.deviceBus},
		{name: "cuDeviceTotalMem_v2", fn: &c.deviceMemory},
		{name: "cuDeviceGetAttribute", fn: &c.attribute},
		{name: "cuDeviceCanAccessPeer", fn: &c.canAccess},
		{name: "cuDevicePrimaryCtxRetain", fn: &c.retain},
		{name: "cuCtxSetCurrent", fn: &c.setCurrent},
		{name: "cuCtxEnablePeerAccess", fn: &c.enablePeer},
		{name: "cuMemAlloc_v2", fn: &c.alloc},
		{name: "cuMemHostAlloc", fn: &c.hostAlloc},
		{name: "cuMemcpyHtoDAsync_v2", fn: &c.toCard},
		{name: "cuMemcpyDtoHAsync_v2", fn: &c.fromCard},
		{name: "cuMemcpyPeerAsync", fn: &c.peer},
		{name: "cuMemsetD32Async", fn: &c.set32},
		{name: "cuStreamCreate", fn: &c.streamCreate},
		{name: "cuStreamWaitEvent", fn: &c.streamWait},
		{name: "cuEventCreate", fn: &c.eventCreate},
		{name: "cuEventRecord", fn: &c.eventRecord},
		{name: "cuEventQuery", fn: &c.eventQuery},
		{name: "cuEventElapsedTime", fn: &c.elapsed},
		{name: "cuMemGetInfo_v2", fn: &c.memoryInfo, optional: true},
		{name: "cuModuleLoadData", fn: &c.moduleLoad, optional: true},
		{name: "cuModuleGetFunction", fn: &c.moduleKernel, optional: true},
		{name: "cuLaunchKernel", fn: &c.launch, optional: true},
		{name: "cuGetErrorName", fn: &c.errorName},
		{name: "cuGetErrorString", fn: &c.errorText},
	}
}

// Results of the driver API that are no failure.
const (
	cudaSuccess     = 0
	cudaNotReady    = 600
	cudaPeerAlready = 704
)

// Device attributes (CUdevice_attribute).
const (
	attrComputeMode = 20
	attrProcessors  = 16 // streaming multiprocessors
	attrMajor       = 75
	attrMinor       = 76
)

// Compute modes (CUcomputemode).
const (
	modeProhibited = 2
	modeExclusive  = 3
)

// cudaKeys tells failures apart by CUresult; every other code is KeyDriver.
var cudaKeys = map[int32]string{
	2: wire.KeyOutOfMemory, 34: wire.KeyStub, 46: wire.KeyBusy, 100: wire.KeyNoDevice, 101: wire.KeyInvalidDevice,
	205: wire.KeyPeer, 214: wire.KeyECC, 217: wire.KeyPeer, 700: wire.KeyIllegalAccess, 711: wire.KeyPeer,
	802: wire.KeyNotReady, 803: wire.KeyDriverMismatch, 804: wire.KeyCompat,
	209: wire.KeyPTX, 218: wire.KeyPTX, 221: wire.KeyNoJIT, 222: wire.KeyPTX, 702: wire.KeyWatchdog,
	805: wire.KeyMPS, 806: wire.KeyMPS, 807: wire.KeyMPS, 808: wire.KeyMPS, 809: wire.KeyMPS,
}

// check turns a CUresult into an error with the driver's own name and words.
func (c *cuda) check(call string, code int32) error {
	if code == cudaSuccess {
		return nil
	}
	e := &wire.Error{Key: cudaKeys[code], API: "cuda", Call: call, Code: int(code)}
	if e.Key == "" {
		e.Key = wire.KeyDriver
	}
	var name, text *byte
	if c.errorName(code, &name) == cudaSuccess {
		e.Name = cString(name)
	}
	if c.errorText(code, &text) == cudaSuccess {
		e.Text = cString(text)
	}
	if e.Text == "" {
		e.Text = fmt.Sprintf("CUDA error %d", code)
	}
	return e
}

// cString copies a C string of at most 1 KiB.
func cString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for n < 1024 && *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// card is a card in use: the primary context, which NCCL's runtime shares, and two streams.
type card struct {
	wire.Device
	ctx     uintptr
	in, out uintptr // streams: towards the card, from it
	first   uintptr // events
	last    uintptr
	last2   uintptr
}

// use makes the card's context current on this thread.
func (s *session) use(c *card) error {
	return s.cu.check("cuCtxSetCurrent", s.cu.setCurrent(c.ctx))
}

// streamNonBlocking keeps a stream apart from the default one.
const streamNonBlocking = 1

// openCard takes a card into use.
func (s *session) openCard(ordinal int) (*card, error) {
	for _, c := range s.cards {
		if c.Ordinal == ordinal {
			return c, nil
		}
	}
	c := &card{}
	err := s.phase(on(wire.PhaseContext, ordinal), func(*wire.Line) error {
		if ordinal < 0 || ordinal >= len(s.all) {
			return &wire.Error{Key: wire.KeyInvalidDevice, API: "helper", Text: fmt.Sprintf("there is no card %d: CUDA shows %d", ordinal, len(s.all))}
		}
		c.Device = s.all[ordinal]
		var dev int32
		if err := s.cu.check("cuDeviceGet", s.cu.deviceGet(&dev, int32(ordinal))); err != nil {
			return err
		}
		if err := s.cu.check("cuDevicePrimaryCtxRetain", s.cu.retain(&c.ctx, dev)); err != nil {
			return taken(err, c.ComputeMode)
		}
		if err := s.use(c); err != nil {
			return err
		}
		for _, p := range []*uintptr{&c.in, &c.out} {
			if err := s.cu.check("cuStreamCreate", s.cu.streamCreate(p, streamNonBlocking)); err != nil {
				return err
			}
		}
		for _, p := range []*uintptr{&c.first, &c.last, &c.last2} {
			if err := s.cu.check("cuEventCreate", s.cu.eventCreate(p, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.cards = append(s.cards, c)
	return c, nil
}

// taken says why a card is unavailable, when its compute mode explains it.
func taken(err error, mode int) error {
	e := asError(err)
	if e.Key != wire.KeyBusy {
		return err
	}
	switch mode {
	case modeProhibited:
		e.Key = wire.KeyProhibited
	case modeExclusive:
		e.Key = wire.KeyExclusive
	}
	return e
}

// openCards takes the request's cards into use, all of them when it names none.
func (s *session) openCards() ([]*card, error) {
	ordinals := s.job.Request.Cards
	if len(ordinals) == 0 {
		for i := range s.all {
			ordinals = append(ordinals, i)
		}
	}
	out := make([]*card, 0, len(ordinals))
	for _, o := range ordinals {
		c, err := s.openCard(o)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// manyCards says why a job of several cards cannot run here, nil when it can.
func (s *session) manyCards() error {
	n := len(s.job.Request.Cards)
	if n == 0 {
		n = len(s.all)
	}
	if n >= 2 {
		return nil
	}
	e := &wire.Error{Key: wire.KeyOneCard, API: "helper", Text: fmt.Sprintf("%d card takes part: nothing to exchange", n)}
	for _, d := range s.all {
		if d.MIG {
			e.Key, e.Text = wire.KeyMIG, fmt.Sprintf("%s is split by MIG: CUDA shows one instance, and instances cannot exchange data", d.BDF)
		}
	}
	return s.phase(wire.Line{Phase: wire.PhaseDevices}, func(*wire.Line) error { return e })
}

// pollEvery is how often an event is asked whether it is done.
const pollEvery = 50 * time.Microsecond

// wait polls until events are recorded. It never blocks in the driver, so that a hang leaves the thread in our hands.
// also is asked now and then for an error from elsewhere; nil for none.
func (s *session) wait(also func() error, events ...uintptr) error {
	asked := time.Now()
	for _, e := range events {
		for spins := 0; ; spins++ {
			code := s.cu.eventQuery(e)
			if code == cudaSuccess {
				break
			}
			if code != cudaNotReady {
				return s.cu.check("cuEventQuery", code)
			}
			if also != nil && time.Since(asked) > 100*time.Millisecond {
				if err := also(); err != nil {
					return err
				}
				asked = time.Now()
			}
			if spins < 100 {
				runtime.Gosched()
				continue
			}
			time.Sleep(pollEvery)
		}
	}
	return nil
}

// record marks a place in a stream.
func (s *session) record(event, stream uintptr) error {
	return s.cu.check("cuEventRecord", s.cu.eventRecord(event, stream))
}

// took is the time between two recorded events, seconds.
func (s *session) took(first, last uintptr) (float64, error) {
	var ms float32
	err := s.cu.check("cuEventElapsedTime", s.cu.elapsed(&ms, first, last))
	return float64(ms) / 1e3, err
}

// deviceBDF writes CUDA's bus id as sysfs does: CUDA prints the domain with four digits or eight, in capitals; sysfs
// with four, and more only where it is larger.
func deviceBDF(s string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(s), ":")
	n, err := strconv.ParseUint(domain, 16, 32)
	if !ok || err != nil {
		return strings.ToLower(s)
	}
	return fmt.Sprintf("%04x:%s", n, rest)
}
