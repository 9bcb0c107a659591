// Package json reads the JSON form of nft(8) (libnftables-json(5)), as `nft -j list ruleset` prints it,
// into the object model of package nft.
//
// Rules and expressions are rewritten in nft's own syntax for package syntax. The package does not write
// JSON and accepts only the command add. Read parse.go first, then reader.go.
//
// JSON has less than the text: sets declared with typeof lose their selectors, tables and chains their
// comments.
//
// # Errors
//
// Every error is a [*ruleset.ErrorList] with the errors of all objects. Errors in the JSON itself have a
// line and a column, others a place such as nftables[3].rule.expr[0].match.left.
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
package json
