// Package check is the verb "weft check": it parses and compiles .nft files as the daemon does,
// without a daemon, a kernel or privileges.
//
// It turns files ([File]) into errors with places ([Problem]), and compiled expressions
// ([Result.Netlink]). Read check.go first.
//
// The files are one ruleset: a rule may refer to a chain, set or object of another file. Files of
// other publishers are context: only their declarations count.
//
// # Errors
//
// A [Problem] is one error of a file. A wrong declaration is reported once, without the rules that use
// it.
//
// # Limits
//
// It does not know a node's kernel, the rights of publishers, or other publishers' fragments: "weft
// plan" asks the daemon.
package check
