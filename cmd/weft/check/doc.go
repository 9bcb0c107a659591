// Package check is the verb "weft check": it compiles .nft files without a daemon, a kernel or
// privileges.
//
// The files are one ruleset: a rule may refer to another file. Files of other publishers are
// context: only their declarations count.
//
// # Errors
//
// A wrong declaration is reported once, without the rules that use it.
//
// # Limits
//
// It does not know a node's kernel, rights, or other publishers' fragments: "weft plan" asks the
// daemon.
package check
