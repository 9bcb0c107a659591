// Package debian gets packages of Debian's suites, older and newer than the machine's own, without
// installing them.
//
// What comes in is the name of a suite, such as "trixie-backports", and of packages; what goes
// out is a directory with their files. It runs apt-get with a configuration of its own, so that
// nothing of the machine's changes. The archive's address is that of the machine's own
// sources, and signatures are checked with its keyring. Read suite.go.
//
// A directory that was filled once is not filled again: to get newer packages, remove it.
package debian
