// Package catalog holds what is known of hardware models before any host is looked at: cards, processors,
// PCIe switches and component watts.
//
// The tables are CSV files in data/, one row a model, each with its source and how far it can be trusted.
// To add a card, add a row to data/gpus.csv; the package test refuses rows that lack a source.
//
// What never lives here: facts about a particular host, and rules.
package catalog
