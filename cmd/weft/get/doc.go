// Package get is the verb "weft get": it prints fragments, tables, publishers, the
// owner of a rule or element, and what the Service frontend of this node does for
// each Service.
//
// In come answers of the aggregator's socket and of the Service frontend's; out go
// tables for people, JSON, YAML, or text that nft(8) reads. Read get.go first: it
// lists the subcommands, each in a file of its own.
package get
