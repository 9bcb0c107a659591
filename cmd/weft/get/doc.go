// Package get is the command "weft get": it prints answers of the sockets of the aggregator and the
// frontends as tables, JSON, YAML, or text for nft(8). get.go lists the subcommands.
package get
