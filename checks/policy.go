package checks

import (
	"slices"

	"preflight/inventory"
)

// Policy is every threshold that is a judgement, resolved for one rig. All of it can be set in a profile.
type Policy struct {
	PSUMargin  float64 // usable ÷ draw below this fails
	PSUNote    float64 // below this passes with a note
	AllowX8    bool    // an x8 link by design passes
	Cores      int     // physical cores of the whole rig
	RAMPerCard float64 // GiB
	StorageTB  float64 // NVMe, 10^12 bytes
	FreeSlots  int     // free slots wanted between air-cooled cards
	TightFails bool    // too few free slots is a fail, not a warn
	MainsLoad  float64 // continuous share of a breaker's rating
	NCCLPass   float64 // share of the expected bus bandwidth that passes
	NCCLWarn   float64 // share below which it fails
	RequireP2P bool
	BurnHot    float64  // °C of a core after the first minute of a burn-in, above which it fails
	BurnWarm   float64  // °C above which it warns
	BurnSpread float64  // K between the hottest and the coolest card, above which it warns
	BurnSag    float64  // share of its clock that a card may lose between the fifth minute and the end
	BurnLoad   float64  // share of the power limit that a card must reach for the load to prove anything
	FitMargin  float64  // share of a card's memory that fragmentation may take (fit)
	FitBusy    float64  // share of a card's peak that a training reaches (fit)
	FitOverlap float64  // share of the computing that hides communication (fit)
	FitSuited  float64  // scaling efficiency from which links suit a job (fit); 0: by the number of cards
	Require    []string // check ids whose unknown makes the exit code 4; nil: the default

	Asked  map[string]bool // checks of what is run only when asked for, and was asked for
	Ignore map[string]bool // checks that the user chose not to look at
}

// tier is the part of the default policy that depends on the number of cards. Figures: DESIGN's table, drawn from
// a year of building such rigs.
type tier struct {
	upTo       int
	cores      int
	storageTB  float64
	tightFails bool
}

var tiers = []tier{
	{upTo: 2, cores: 8, storageTB: 2},
	{upTo: 4, cores: 16, storageTB: 4},
	{upTo: 1 << 10, cores: 32, storageTB: 4, tightFails: true},
}

// PolicyFor resolves a profile for a rig of so many cards. A nil profile means the defaults.
func PolicyFor(p *inventory.Profile, cards int) Policy {
	t := tiers[len(tiers)-1]
	for _, candidate := range tiers {
		if cards <= candidate.upTo {
			t = candidate
			break
		}
	}
	out := Policy{
		PSUMargin: 1.2, PSUNote: 1.3, Cores: t.cores, RAMPerCard: 32, StorageTB: t.storageTB, FreeSlots: 1,
		TightFails: t.tightFails, MainsLoad: 0.8, NCCLPass: 0.70, NCCLWarn: 0.35,
		BurnHot: 85, BurnWarm: 80, BurnSpread: 12, BurnSag: 0.10, BurnLoad: 0.75,
		FitMargin: 0.05, FitBusy: 0.40, FitOverlap: 0.60,
	}
	if p == nil {
		return out
	}
	set(&out.PSUMargin, p.PSUMargin)
	set(&out.PSUNote, p.PSUNote)
	set(&out.AllowX8, p.AllowX8)
	set(&out.Cores, p.Cores)
	set(&out.RAMPerCard, p.RAMPerCard)
	set(&out.StorageTB, p.StorageTB)
	set(&out.FreeSlots, p.FreeSlots)
	set(&out.MainsLoad, p.MainsLoad)
	set(&out.NCCLPass, p.NCCLPass)
	set(&out.NCCLWarn, p.NCCLWarn)
	set(&out.RequireP2P, p.RequireP2P)
	set(&out.BurnHot, p.BurnHot)
	set(&out.BurnWarm, p.BurnWarm)
	set(&out.BurnSpread, p.BurnSpread)
	set(&out.BurnSag, p.BurnSag)
	set(&out.BurnLoad, p.BurnLoad)
	set(&out.FitMargin, p.FitMargin)
	set(&out.FitBusy, p.FitBusy)
	set(&out.FitOverlap, p.FitOverlap)
	set(&out.FitSuited, p.FitEfficiency)
	out.Require = p.Require
	return out
}

func set[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

// declarative are the checks that can be known only from a declaration; unless a profile requires them, their
// unknown does not decide the exit code when nobody gave one.
var declarative = map[string]func(*inventory.Rig) bool{
	"power.psu":            func(r *inventory.Rig) bool { return len(r.PSUs) > 0 },
	"power.mains":          func(r *inventory.Rig) bool { return r.Mains != nil },
	"chassis.slot-spacing": func(r *inventory.Rig) bool { return r.Chassis != nil },
	"gpu.count":            func(r *inventory.Rig) bool { return r.Cards != nil },
}

// onRequest are the checks of what takes minutes and is run only when somebody asks for it: unless a profile requires them, or
// the run asked for them, nobody misses their result.
var onRequest = map[string]bool{"burn-in.thermal": true, "burn-in.power": true, "burn-in.memory": true, "ddp.scaling": true}

// Required says whether an unknown of this check makes the exit code 4.
func (p Policy) Required(rig *inventory.Rig, check string) bool {
	if p.Ignore[check] {
		return false
	}
	if p.Require != nil {
		return slices.Contains(p.Require, check)
	}
	if onRequest[check] {
		return p.Asked[check]
	}
	declared, needs := declarative[check]
	return !needs || (rig != nil && declared(rig))
}
