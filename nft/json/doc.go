// Package json reads the JSON form of nft(8) (libnftables-json(5)), as
// `nft -j list ruleset` prints it, into the object model of package nft.
//
// A document goes in; tables, or the errors of all its objects, come out. Rules and
// expressions are rewritten in nft's own syntax and then parsed by package syntax, so
// that JSON always means what the text means. [Parse] reads JSON only; [ParseFile] and
// [ParsePositions] read files in either form. The package does not write JSON and does
// not accept commands other than add.
//
// Read parse.go first, then reader.go (tables, chains and rules), set.go and
// object.go. The statements and expressions whose words follow
// each other are in the tables of phrase.go; the others are rewritten by a method of writer.
//
// JSON has less information than the text: sets declared with typeof lose their
// selectors, and tables and chains lose their comments.
//
// # Errors
//
// Every error is a [*ruleset.ErrorList]. Errors in the JSON itself have a line and a column.
// All others name a place in the document, such as nftables[3].rule.expr[0].match.left.
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
package json
