package wire

// Entry is one line of a conversation as it is kept in a snapshot: a request as it was sent, a line of the answer, or
// how it all ended.
type Entry struct {
	Request *Request `json:"request,omitempty"`
	Ended   *Ended   `json:"ended,omitempty"`
	Line
}

// Ended is how the helper's stay on a host ended, told by the shell that started it.
type Ended struct {
	How    string `json:"how"`               // one of the words below
	Code   int    `json:"code"`              // exit status, when it ended by itself
	Why    string `json:"why,omitempty"`     // of EndedNever and EndedCut
	Place  string `json:"place,omitempty"`   // directory that it ran from
	Arch   string `json:"arch,omitempty"`    // uname -m
	Bytes  int    `json:"bytes,omitempty"`   // that were sent
	PushMS int64  `json:"push_ms,omitempty"` // to send and check them
	Stderr string `json:"stderr,omitempty"`
}

// Ways of ending.
const (
	EndedExit   = "exit"   // by itself
	EndedKilled = "killed" // by the shell, past its limit
	EndedWedged = "wedged" // killed, and still there in state D
	EndedCut    = "cut"    // the connection was lost: nothing more is known
	EndedNever  = "never"  // it could not be started
)

// Lacking says whether an error means that the helper had no library to work with, which is no fault of the cards.
func Lacking(key string) bool {
	switch key {
	case KeyNoLibCUDA, KeyNoLibNCCL, KeyCannotLoad, KeyMissingSymbol, KeyStub, KeyOldNCCL, KeyHelper, KeyBadRequest:
		return true
	}
	return false
}
