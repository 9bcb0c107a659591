// Package check is the verb "weft check": it parses and compiles .nft files as the daemon does,
// without a daemon, a kernel or privileges.
//
// It turns files ([File]) into all their errors with places ([Problem]), and the compiled expressions
// ([Result.Netlink]). Read check.go first.
//
// The files are one ruleset: a rule may refer to a chain, set or object of another file. Files of
// other publishers are context: only their declarations count.
//
// # Errors
//
// A [Problem] is one error of one file. A wrong declaration is reported once, without the rules that
// refer to it.
//
// # What it does not do
//
// It does not know the limits of a node's kernel, the rights of publishers, or fragments of other
// publishers: "weft plan" asks the daemon for those.
package check
