// Package compile turns rules into the expressions that the kernel runs.
//
// What comes in is the text of a rule and a [Scope] with the declarations of its
// table; what goes out is a [Rule]: expressions, anonymous sets, and the names that
// the rule refers to. Read compiler.go first, then rule_context.go, rule_eval.go and
// rule_generate.go; each statement has a file rule_*.go and each selector a file
// selector_*.go.
//
// # Rules
//
// [CompileRule] is a pipeline of pure functions: text, syntax tree, evaluated
// terms, expressions, bytes. Evaluation gives every expression its type, width
// and byte order, inserts the comparisons that a selector depends on ("tcp
// dport 80" matches only TCP) if the rule has not made them, and makes sets of
// braces. Then redundant comparisons are removed, adjacent ones are merged, and the
// generator allocates registers. The result is what nft(8) 1.0.6 makes of the
// same text, with the same registers, so that nft lists it as it was written.
//
// The vocabulary is in package selector, kernel expressions are in package expr,
// declarations in packages set and object.
//
// # What it rejects
//
// The package reads no clock, no file and no kernel. Names of services and
// protocols, and of the users and groups that every Debian system has, come from
// compiled-in tables; other users, and cgroups
// must be numbers, names of interfaces stand for themselves in place of their indices, hours and dates are in UTC. Unknown input is an error with a
// position, never left out. A statement after one that ends the rule is an error. The
// package rejects what the kernel accepts but on which
// nft(8) 1.0.6 aborts when it lists it: the result of a map as data of a dynamic
// update, two conntrack ports in a concatenation, and masks on TCP options without a
// name. It also rejects numbers that nft cuts off, such as a synproxy mss above
// 65535, and text that nft misreads: codes of reject above 255, Ethernet addresses
// written as numbers or with dots, a traffic class that is not a number, text after a
// date. It accepts and forgets what nft accepts and forgets, such as a log snaplen
// without a group. Raw payload has at most 128 bits, which is what the kernel
// compares.
//
// # Errors
//
// Errors in the text of a rule are an [*Error], wrapped. Inside the package the first error
// is a panic, as in text/template/parse: fail raises it, and only [CompileRule] recovers it.
//
// # Concurrency
//
// All functions are pure. Their results are not modified afterwards and can be
// shared by goroutines.
package compile
