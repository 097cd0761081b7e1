// Package fit turns what is declared, known and measured of rigs into the few figures that [workload] reckons with, and
// reads workloads from flags, inventories and config.json files.
//
// What lives here: the way from inventory, facts, findings and catalogue to workload. What never will: the arithmetic, or
// how it is shown.
package fit
