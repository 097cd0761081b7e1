package fleet

import (
	"context"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"

	"preflight/checks"
	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// circuits lets rigs that name the same mains circuits be under load together only as far as those bear it.
type circuits struct {
	mu   sync.Mutex
	byID map[string]*circuit
}

type circuit struct {
	watts int64
	free  *semaphore.Weighted
}

// enter waits until a rig's draw has room, and returns what gives it back. A rig on circuits of its own never waits; one whose
// draw is not known, or is more than the circuits bear, is alone on them.
func (c *circuits) enter(ctx context.Context, rig *inventory.Rig, h *facts.Host, cat *catalog.Catalog) (func(), error) {
	if rig == nil || rig.Mains == nil || rig.Mains.Shared == "" {
		return func() {}, nil
	}
	policy := policyOf(rig, h)
	wall, limit, known := checks.WallDraw(rig, h, policy, orEmbedded(cat))
	if !known {
		m := rig.Mains
		limit = m.Volts * m.Amps * float64(max(m.Circuits, 1)) * policy.MainsLoad
		wall = limit
	}
	x := c.named(rig.Mains.Shared, int64(limit))
	need := min(int64(math.Ceil(wall)), x.watts)
	if err := x.free.Acquire(ctx, need); err != nil {
		return nil, err
	}
	return func() { x.free.Release(need) }, nil
}

// named is the circuit of a name; the first rig that names it says what it bears.
func (c *circuits) named(name string, watts int64) *circuit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]*circuit{}
	}
	if c.byID[name] == nil {
		c.byID[name] = &circuit{watts: watts, free: semaphore.NewWeighted(watts)}
	}
	return c.byID[name]
}

func orEmbedded(cat *catalog.Catalog) *catalog.Catalog {
	if cat == nil {
		return catalog.MustLoad()
	}
	return cat
}
