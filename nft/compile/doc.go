// Package compile turns rules into kernel expressions.
//
// Input is the text of a rule and a [Scope] with the declarations of the table. Output is a
// [Rule]: expressions, anonymous sets and references. Read compiler.go first, then kind.go,
// rule_context.go, rule_eval.go and rule_generate.go.
//
// # Rules
//
// [CompileRule] is a pipeline: text, syntax tree, evaluated terms, expressions, bytes. Evaluation
// types every expression and inserts missing dependencies ("tcp dport 80" matches only TCP).
// Redundant comparisons are then removed, adjacent ones merged, and registers allocated.
// Expressions and registers equal the output of nft(8) 1.0.6, so nft lists a rule as written.
//
// # Rejected rules
//
// The package reads no clock, no file and no kernel: see package datatype for names and times. A
// rule with iif "eth0" compares the name, not the index.
//
// Unknown input and statements after a terminal one are errors. The package also rejects:
//
//   - Rules on which nft(8) 1.0.6 aborts when it lists them: the result of a map as data of a dynamic
//     update, two conntrack ports in a concatenation, and masks on TCP options without a name.
//   - Numbers, text and raw payload that nft cuts off or misreads (nft/LANGUAGE.md), also Ethernet
//     addresses written as numbers or with dots.
//
// Like nft, it accepts and ignores some options, such as a log snaplen without a group.
//
// # Errors
//
// Errors in the text wrap *syntax.Error. Inside the package the first error is a panic, which only
// [CompileRule] recovers.
//
// # Concurrency
//
// All functions are pure. Goroutines may share their results, which are never modified.
package compile
