// Package load makes rulesets for package eval: from the kernel, and from text.
//
// [Kernel] reads the tables of all programs in a network namespace. It does not read
// rules and the elements of named sets: the evaluation asks the kernel for the chains that it
// enters and the keys that it looks up, so that a packet is explained in milliseconds whatever
// the ruleset holds. [Tables] compiles what a file
// declares, such as the output of `nft list ruleset`, after ruleset.Parse.
//
// Read kernel.go first.
//
// # Errors
//
// A rule that weft cannot compile or decode is not an error: the evaluation of a packet that
// reaches it is undecided, and says why. Errors of Kernel are those of kernel.Reader, errors of
// Tables name the declaration.
//
// # Concurrency
//
// A Ruleset of Kernel uses its kernel.Reader, so it belongs to the same goroutine. It is valid
// until the Reader is closed. One of Tables may be shared.
package load
