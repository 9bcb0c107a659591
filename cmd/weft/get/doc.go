// Package get is the command "weft get": it prints fragments, tables, publishers, owners of rules and
// elements, and the states of Services and network policies.
//
// Input is answers of the sockets of the aggregator and the frontends. Output is tables, JSON, YAML, or
// text for nft(8). Read get.go first: it lists the subcommands, each in its own file.
package get
