// Package fleet takes rigs from declaration to findings: connect, collect, probe, judge, many at once.
//
// A rig that cannot be reached is a result like any other and never stops the rest. What never lives here: how a
// host is reached, what a fact means, or how findings are shown.
package fleet
