package checks

import (
	"regexp"
	"strconv"
	"strings"

	"preflight/internal/facts"
)

// archAnswer is whether a build of torch has code for a card.
type archAnswer int

const (
	archUnknown  archAnswer = iota // neither list nor table tells
	archNative                     // machine code that the card runs
	archPTX                        // only PTX, which the driver compiles at the first start
	archNone                       // nothing
	archDoubtful                   // nothing, by a figure that nobody confirmed
)

var archWord = regexp.MustCompile(`^(sm|compute)_(\d{2,3})([af]?)$`)

// archCode asks the list of architectures where there is one, else the table of CUDA toolkits.
//
// Machine code runs on its own and every later minor version of its major version ("a" only on its own, "f" within its
// family); PTX runs on every later version. Source: CUDA programming guide, "Application compatibility".
func archCode(s Subject, t facts.Torch, compute string) archAnswer {
	major, minor, ok := computeOf(compute)
	if !ok {
		return archUnknown
	}
	if len(t.Archs) == 0 {
		return archByToolkit(s, t.CUDA, compute)
	}
	best, read := archNone, false
	for _, word := range t.Archs {
		m := archWord.FindStringSubmatch(word)
		if m == nil {
			continue
		}
		read = true
		n, _ := strconv.Atoi(m[2])
		exact := n/10 == major && n%10 == minor
		switch {
		case m[1] == "compute" && m[3] == "" && n <= major*10+minor && best == archNone:
			best = archPTX
		case m[1] == "sm" && (exact || m[3] != "a" && n/10 == major && n%10 <= minor):
			return archNative
		}
	}
	if !read {
		return archUnknown
	}
	return best
}

func archByToolkit(s Subject, cuda, compute string) archAnswer {
	row, ok := s.Cat.CUDAFor(compute)
	if !ok || cuda == "" {
		return archUnknown
	}
	made := atLeastVersion(cuda, row.First) && (row.Last == "" || atLeastVersion(row.Last, cuda))
	switch {
	case made:
		return archUnknown // CUDA could have; whether this build has is not told
	case row.Confirmed:
		return archNone
	}
	return archDoubtful
}

// computeOf splits a compute capability, "8.9".
func computeOf(text string) (major, minor int, ok bool) {
	a, b, _ := strings.Cut(text, ".")
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	return major, minor, err1 == nil && err2 == nil
}
