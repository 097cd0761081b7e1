package wire

import "fmt"

// Error is why a phase did not succeed.
type Error struct {
	Key  string `json:"key"`            // what to branch on
	API  string `json:"api,omitempty"`  // cuda, nccl, helper
	Call string `json:"call,omitempty"` // the function that failed: cuInit
	Code int    `json:"code,omitempty"` // its result
	Name string `json:"name,omitempty"` // CUDA_ERROR_NO_DEVICE
	Text string `json:"text"`           // the library's own words, or ours
	// Last is ncclGetLastError: the reason behind "unhandled cuda error".
	Last string `json:"last,omitempty"`
}

func (e *Error) Error() string {
	if e.Call == "" {
		return e.Text
	}
	return fmt.Sprintf("%s: %s (%d)", e.Call, e.Text, e.Code)
}

// Keys of an error.
const (
	KeyBadRequest     = "bad-request"
	KeyNoLibCUDA      = "no-libcuda" // no libcuda.so.1 anywhere: no driver, or a container without it
	KeyNoLibNCCL      = "no-libnccl"
	KeyCannotLoad     = "cannot-load"    // the library is there, and the loader refuses it
	KeyMissingSymbol  = "missing-symbol" // the library lacks a function
	KeyStub           = "stub-library"   // CUDA 34: the toolkit's stub, not the driver's library
	KeyOldNCCL        = "old-nccl"
	KeyNoDevice       = "no-device"        // CUDA 100
	KeyInvalidDevice  = "invalid-device"   // CUDA 101, or an ordinal that does not exist
	KeyOneCard        = "one-card"         // a job of several cards, one visible
	KeyNotReady       = "system-not-ready" // CUDA 802: fabric manager
	KeyDriverMismatch = "driver-mismatch"  // CUDA 803: kernel module and libcuda differ
	KeyCompat         = "compat-unsupported"
	KeyMPS            = "mps"        // CUDA 805 and its kin
	KeyBusy           = "busy"       // CUDA 46
	KeyExclusive      = "exclusive"  // CUDA 46 while the card is in exclusive compute mode
	KeyProhibited     = "prohibited" // compute mode prohibited
	KeyMIG            = "mig"
	KeyOutOfMemory    = "out-of-memory"
	KeyECC            = "ecc"
	KeyIllegalAccess  = "illegal-access"
	KeyPeer           = "peer-access" // CUDA 205, 217 and their kin while enabling P2P
	KeyDriver         = "driver"      // any other CUDA error
	KeyNCCLCUDA       = "nccl-cuda"   // NCCL 1
	KeyNCCLSystem     = "nccl-system" // NCCL 2
	KeyNCCLInternal   = "nccl-internal"
	KeyNCCLUsage      = "nccl-usage"  // NCCL 4 and 5
	KeyNCCLRemote     = "nccl-remote" // NCCL 6
	KeyNCCL           = "nccl"        // any other NCCL error
	KeyHang           = "hang"
	KeyWedged         = "wedged" // hung in state D
	KeyCrash          = "crash"
	KeyWrongSums      = "wrong-sums"
	KeyCorrupt        = "corrupt"  // a P2P copy changed the data
	KeyNetwork        = "network"  // no interface or no way to another host
	KeyNoJIT          = "no-jit"   // CUDA 221: libnvidia-ptxjitcompiler.so.1 is missing
	KeyPTX            = "ptx"      // CUDA 209, 218, 222: the driver does not take the kernels
	KeyWatchdog       = "watchdog" // CUDA 702: a kernel ran too long for a card that drives a display
	KeyLittleMemory   = "little-memory"
	KeySilent         = "silent" // the controller was not heard for too long
	KeyHelper         = "helper" // the helper itself could not go on: no pipe, no process
)
