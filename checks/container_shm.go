package checks

import (
	"fmt"
	"regexp"
	"strings"

	"preflight/internal/facts"
)

// container.shm: is /dev/shm of this container large enough for NCCL and data loaders?
//
//	NCCL could not extend a segment: no space left           fail, wherever it ran
//	NCCL failed on a segment, for another reason             unknown: the size is not the proven cause
//	not in a container                                       skip
//	64 MiB or less (what Docker gives), several cards        fail; one card: warn
//	below 1 GiB                                              warn
//	1 GiB or more, less than 256 MiB of it free              warn: left-over segments
//	otherwise                                                pass
//
// Without P2P all that cards exchange goes through /dev/shm, in segments of 4 to 33 MB for each connection; a data
// loader's workers hand batches over in it as well. On a host it is half of the RAM and never the limit.
var containerShm = Check{ID: "container.shm", Title: "shared memory", Decide: decideShm}

const (
	shmDefault = 64   // MiB: what a container engine gives unless it is told otherwise
	shmWanted  = 1024 // MiB, policy: facts of NCCL's own documentation (--shm-size=1g)
	shmLowFree = 256  // MiB, policy: a few segments
)

var (
	shmFull   = regexp.MustCompile(`(?i)failed to extend /dev/shm/\S+|/dev/shm\S*.*no space left|unable to (?:create|write).*shared memory|posix_fallocate failed : No space`)
	shmBroken = regexp.MustCompile(`(?i)Error while (?:creating|attaching to) shared memory segment|ncclShm\w+.*failed|unlink shared memory`)
)

func decideShm(s Subject) []Finding {
	if f, said := shmSaid(s); said {
		return []Finding{f}
	}
	kind, known := s.Host.Kind.Get()
	switch {
	case known && kind != "container":
		return []Finding{skip(rigSubject, "not a container")}
	case !known:
		return []Finding{unknown(rigSubject, "whether this is a container is not in the input").knownBy("give a snapshot of the host (preflight collect)")}
	}
	total, ok := s.Host.OS.ShmTotal.Get()
	if !ok {
		return []Finding{unknown(rigSubject, "the size of /dev/shm is not in the input").knownBy("give df -k /dev/shm from inside the container")}
	}
	return []Finding{judgeShm(s, total).because(ev(s.Host.OS.ShmTotal), ev(s.Host.OS.ShmFree))}
}

// shmSaid judges by what NCCL itself said of /dev/shm, a lack of room before any other failure.
func shmSaid(s Subject) (Finding, bool) {
	said := append([]facts.Named{}, s.Host.Software.ShmErrors...)
	for _, r := range s.Host.NCCL {
		said = append(said, facts.Named{Value: oneLine(r.Error), Source: r.Source})
	}
	for _, n := range said {
		if shmFull.MatchString(n.Value) {
			return fail(rigSubject, "NCCL found no room in /dev/shm").saw(n.Value, "").because(evs(n.Source, n.Value), ev(s.Host.OS.ShmTotal)).fix("container.shm/small"), true
		}
	}
	for _, n := range said {
		if shmBroken.MatchString(n.Value) {
			return unknown(rigSubject, "NCCL failed on a segment of /dev/shm, but not for want of room").because(evs(n.Source, n.Value)).
				knownBy("give df -h /dev/shm from where it failed, and NCCL_DEBUG=INFO"), true
		}
	}
	return Finding{}, false
}

func judgeShm(s Subject, total int64) Finding {
	seen, wanted := fmt.Sprintf("%d MiB", total), fmt.Sprintf("≥ %d MiB", shmWanted)
	free := s.Host.OS.ShmFree.Or(total)
	switch {
	case total <= shmDefault && cardCount(s) > 1:
		return fail(rigSubject, "/dev/shm has %d MiB, too little for %d cards", total, cardCount(s)).saw(seen, wanted).fix("container.shm/small")
	case total < shmWanted:
		return warn(rigSubject, "/dev/shm has %d MiB, less than NCCL and data loaders want", total).saw(seen, wanted).fix("container.shm/small")
	case free < shmLowFree:
		return warn(rigSubject, "only %d of %d MiB of /dev/shm are free", free, total).saw(fmt.Sprintf("%d MiB", free), fmt.Sprintf("≥ %d MiB", shmLowFree)).fix("container.shm/full")
	}
	return pass(rigSubject, "/dev/shm has %d MiB", total).saw(seen, wanted)
}

// oneLine is the first line of a text.
func oneLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// hostKindIn says whether the host is known to be of one of the kinds.
func hostKindIn(h *facts.Host, kinds ...string) bool {
	for _, k := range kinds {
		if h.Kind.Known() && h.Kind.Value == k {
			return true
		}
	}
	return false
}
