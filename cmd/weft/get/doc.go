// Package get is the command "weft get": it prints fragments, tables, publishers, the owner of a rule or
// element, and the states of Services and network policies.
//
// Input is answers of the sockets of the aggregator and the frontends. Output is tables, JSON, YAML, or
// text that nft(8) reads. Read get.go first: it lists the subcommands, each in its own file.
package get
