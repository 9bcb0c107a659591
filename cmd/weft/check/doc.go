// Package check is what "weft check" does: it parses and compiles .nft files as
// the daemon would, without a daemon, a kernel or privileges, and reports all
// errors of all files at their places.
//
// The files are one ruleset: a rule may refer to a chain, set or object that
// another of the files declares. What publishers other than the author declare
// is given as context: of such a file the declarations count, its rules are not
// compiled.
//
// # Errors
//
// A [Problem] is one error of one file. A declaration that is wrong is reported
// once: the rules that refer to it are not.
//
// # What it does not do
//
// It does not know what the kernel of a node would refuse, who may publish what,
// and what other publishers have: "weft plan" asks the daemon.
package check
