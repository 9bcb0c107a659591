// Package debian downloads packages of Debian's suites, older and newer than the machine's own, without
// installing them.
//
// In come the names of a suite, such as "trixie-backports", and of packages; out goes a directory with their
// files. The archive's address comes from the machine's sources, and its keyring checks signatures. Read
// suite.go.
//
// A filled directory is never updated: to get newer packages, remove it.
package debian
