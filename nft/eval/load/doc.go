// Package load makes rulesets for package eval.
//
// [Kernel] reads the tables of all programs in a network namespace. Rules and the elements of named sets
// are read on demand, so it takes milliseconds to explain a packet, regardless of the size of the ruleset.
// [Tables] compiles the declarations of a file, such as the output of `nft list ruleset`, after
// ruleset.Parse.
//
// Read kernel.go first.
//
// # Errors
//
// A rule that weft cannot compile or decode is not an error: the evaluation of a packet that reaches it is
// undecided. Kernel returns the errors of kernel.Reader. Errors of Tables name the declaration.
//
// # Concurrency
//
// A Ruleset of Kernel uses its kernel.Reader, so it belongs to the same goroutine. It is valid until the
// Reader is closed. A Ruleset of Tables may be shared.
package load
