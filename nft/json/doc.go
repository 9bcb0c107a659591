// Package json reads the JSON form of nft(8) (libnftables-json(5)), as `nft -j list ruleset` prints it,
// into the object model of package nft.
//
// [Parse] reads JSON; [ParseFile] and [ParsePositions] read files in either form. Rules and expressions are
// rewritten in nft's own syntax for package syntax, so JSON always means the same as text. The package does
// not write JSON and accepts only the command add.
//
// Read parse.go first, then reader.go (tables, chains and rules), set.go and object.go. phrase.go has
// tables for statements and expressions with words in sequence; methods of writer rewrite the others.
//
// JSON has less information than the text: sets declared with typeof lose their selectors, and tables and
// chains lose their comments.
//
// # Errors
//
// Every error is a [*ruleset.ErrorList] with the errors of all objects. Errors in the JSON itself have a
// line and a column, others a place in the document, such as nftables[3].rule.expr[0].match.left.
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
package json
