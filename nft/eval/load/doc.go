// Package load makes rulesets for package eval.
//
// [Kernel] reads the tables of a network namespace, and rules and elements of named sets on demand.
// [Tables] compiles the declarations of a file, after ruleset.Parse.
//
// # Errors
//
// At a rule that weft cannot compile or decode, the evaluation is undecided. Kernel returns the errors of
// kernel.Reader. Errors of Tables name the declaration.
//
// # Concurrency
//
// A Ruleset of Kernel belongs to the kernel.Reader's goroutine, and is valid until the Reader is closed.
// A Ruleset of Tables may be shared.
package load
