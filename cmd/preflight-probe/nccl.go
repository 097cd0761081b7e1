//go:build linux

package main

import (
	"fmt"
	"strings"
	"unsafe"

	"preflight/internal/probe/wire"
)

// uniqueID is ncclUniqueId, which ncclCommInitRank takes by value.
type uniqueID struct{ b [wire.IDBytes]byte }

// nccl is what the helper uses of libnccl; nccl.h, the same from 2.8 on. Handles are addresses.
type nccl struct {
	version    func(v *int32) int32
	newID      func(id *uniqueID) int32
	initAll    func(comms *uintptr, n int32, devices *int32) int32
	initRank   func(comm *uintptr, ranks int32, id uniqueID, rank int32) int32
	allReduce  func(send, recv, count uint64, dtype, op int32, comm, stream uintptr) int32
	groupStart func() int32
	groupEnd   func() int32
	asyncError func(comm uintptr, code *int32) int32
	destroy    func(comm uintptr) int32
	errorText  func(code int32) *byte
	lastError  func(comm uintptr) *byte // since 2.13
}

func (n *nccl) symbols() []symbol {
	return []symbol{
		{name: "ncclGetVersion", fn: &n.version},
		{name: "ncclGetUniqueId", fn: &n.newID},
		{name: "ncclCommInitAll", fn: &n.initAll},
		{name: "ncclCommInitRank", fn: &n.initRank},
		{name: "ncclAllReduce", fn: &n.allReduce},
		{name: "ncclGroupStart", fn: &n.groupStart},
		{name: "ncclGroupEnd", fn: &n.groupEnd},
		{name: "ncclCommGetAsyncError", fn: &n.asyncError},
		{name: "ncclCommDestroy", fn: &n.destroy},
		{name: "ncclGetErrorString", fn: &n.errorText},
		{name: "ncclGetLastError", fn: &n.lastError, optional: true},
	}
}

// Constants of nccl.h.
const (
	ncclFloat32    = 7
	ncclSum        = 0
	ncclMax        = 2
	ncclInProgress = 7
)

// oldestNCCL is the first release that the helper uses. Before 2.8 there are no kernels for the consumer cards of
// Ampere and later, and the log has another form.
const oldestNCCL = 20800

// ncclKeys tells failures apart by ncclResult_t.
var ncclKeys = map[int32]string{
	1: wire.KeyNCCLCUDA, 2: wire.KeyNCCLSystem, 3: wire.KeyNCCLInternal, 4: wire.KeyNCCLUsage, 5: wire.KeyNCCLUsage, 6: wire.KeyNCCLRemote,
}

// cudaInNCCL are CUDA's own words for failures behind NCCL's "unhandled cuda error", which has no code of them.
var cudaInNCCL = []struct{ words, key string }{
	{"'out of memory'", wire.KeyOutOfMemory},
	{"busy or unavailable'", wire.KeyBusy},
	{"'system not yet initialized'", wire.KeyNotReady},
	{"'no CUDA-capable device is detected'", wire.KeyNoDevice},
	{"'peer access is not supported between these two devices'", wire.KeyPeer},
	{"'mapping of buffer object failed'", wire.KeyPeer},
	{"'an illegal memory access was encountered'", wire.KeyIllegalAccess},
}

// check turns a ncclResult_t into an error with NCCL's words and the last reason that it recorded.
func (n *nccl) check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	e := &wire.Error{Key: ncclKeys[code], API: "nccl", Call: call, Code: int(code), Text: cString(n.errorText(code))}
	if e.Key == "" {
		e.Key = wire.KeyNCCL
	}
	if n.lastError != nil {
		e.Last = strings.TrimSpace(cString(n.lastError(0)))
	}
	if e.Key == wire.KeyNCCLCUDA {
		for _, c := range cudaInNCCL {
			if strings.Contains(e.Last, c.words) {
				e.Key = c.key
				break
			}
		}
	}
	return e
}

// loadNCCL finds and loads the library, and refuses one that is too old.
func (s *session) loadNCCL() (*nccl, error) {
	n := &nccl{}
	err := s.phase(wire.Line{Phase: wire.PhaseLoadNCCL}, func(end *wire.Line) error {
		lib, from, err := open("nccl", wire.KeyNoLibNCCL, findNCCL(disk{}, s.job.Request))
		if err != nil {
			return err
		}
		if err := bind(lib, "nccl", n.symbols()); err != nil {
			return err
		}
		var v int32
		if err := n.check("ncclGetVersion", n.version(&v)); err != nil {
			return err
		}
		from.Version = ncclVersion(v)
		end.Library = &from
		if full(v) < oldestNCCL {
			return &wire.Error{Key: wire.KeyOldNCCL, API: "nccl", Call: "ncclGetVersion", Text: fmt.Sprintf("libnccl %s (%s) is older than %s", from.Version, from.Path, ncclVersion(oldestNCCL))}
		}
		return nil
	})
	return n, err
}

// full is a version as NCCL has numbered it since 2.9; up to 2.8 it was X·1000 + Y·100 + Z.
func full(v int32) int32 {
	if v < 10000 {
		return v/1000*10000 + v%1000
	}
	return v
}

func ncclVersion(v int32) string {
	v = full(v)
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

// comm is one rank of this process.
type comm struct {
	handle     uintptr
	card       *card
	send, recv uint64
}

// asyncErrors asks all communicators for errors that came after a call returned.
func (n *nccl) asyncErrors(comms []*comm) func() error {
	return func() error {
		for _, c := range comms {
			var code int32
			if err := n.check("ncclCommGetAsyncError", n.asyncError(c.handle, &code)); err != nil {
				return err
			}
			if code != ncclInProgress && code != 0 {
				return n.check("ncclCommGetAsyncError", code)
			}
		}
		return nil
	}
}

// together issues one collective for every rank of this process. A process with several ranks must do so as a group:
// one after the other they would wait for each other.
func (s *session) together(n *nccl, comms []*comm, count int64, op int32) error {
	if err := n.check("ncclGroupStart", n.groupStart()); err != nil {
		return err
	}
	for _, c := range comms {
		if err := s.use(c.card); err != nil {
			return err
		}
		if err := n.check("ncclAllReduce", n.allReduce(c.send, c.recv, uint64(count), ncclFloat32, op, c.handle, c.card.in)); err != nil {
			return err
		}
	}
	return n.check("ncclGroupEnd", n.groupEnd())
}

// buffer is pinned memory of the host, which asynchronous copies need: they must not reach memory of Go.
type buffer struct {
	ptr   unsafe.Pointer
	bytes int64
}

// hostPortable lets every context of the process use a pinned buffer.
const hostPortable = 1

func (s *session) pin(bytes int64) (buffer, error) {
	b := buffer{bytes: bytes}
	err := s.cu.check("cuMemHostAlloc", s.cu.hostAlloc(&b.ptr, uint64(bytes), hostPortable))
	return b, err
}

func (b buffer) words() []uint32   { return unsafe.Slice((*uint32)(b.ptr), b.bytes/4) }
func (b buffer) raw() []byte       { return unsafe.Slice((*byte)(b.ptr), b.bytes) }
func (b buffer) floats() []float32 { return unsafe.Slice((*float32)(b.ptr), b.bytes/4) }

// onCard takes memory of a card.
func (s *session) onCard(c *card, bytes int64) (uint64, error) {
	var p uint64
	if err := s.use(c); err != nil {
		return 0, err
	}
	err := s.cu.check("cuMemAlloc", s.cu.alloc(&p, uint64(bytes)))
	return p, err
}
