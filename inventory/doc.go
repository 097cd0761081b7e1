// Package inventory reads what an owner declares about rigs: an HCL file, or a directory of them, becomes an
// Inventory, or a list of mistakes that each name a file, a line and, where there is one, the word that was meant.
//
// schema.go holds one small table a block; decoding, suggestions and the tables in docs/inventory.md all come from
// it, so that a new attribute is one new row. Expressions, variables, locals and for_each behave as in Terraform.
// A site's own rules are checked for types here and evaluated later, by the checks, against observed facts.
//
// What never lives here: observed facts, verdicts, and anything that touches a host or the network.
package inventory
