// Package check is the verb "weft check": it parses and compiles .nft files as the daemon
// does, without a daemon, a kernel or privileges.
//
// In come files ([File]); out come all errors of all files with their places
// ([Problem]), and the compiled expressions ([Result.Netlink]). Read check.go first.
//
// The files are one ruleset: a rule may refer to a chain, set or object that another
// file declares. Files that other publishers would publish are context: their
// declarations count, and their rules are not compiled.
//
// # Errors
//
// A [Problem] is one error of one file. A wrong declaration is reported once, without
// the rules that refer to it.
//
// # What it does not do
//
// It does not know what the kernel of a node would refuse, who may publish what, and what
// other publishers have: "weft plan" asks the daemon for that.
package check
