package checks

import (
	"preflight/internal/catalog"
	"preflight/internal/facts"
	"preflight/inventory"
)

// WallDraw is what a rig draws at the wall under full load, and what its declared circuits carry continuously, W, by the
// arithmetic of power.mains; false when the draw is not known or no circuit is declared.
func WallDraw(rig *inventory.Rig, h *facts.Host, p Policy, cat *catalog.Catalog) (wall, limit float64, ok bool) {
	return mainsLoad(newSubject(rig, h, p, cat))
}
