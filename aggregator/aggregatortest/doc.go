// Package aggregatortest has what tests of the aggregator, its server and its clients
// share: Kernel is nf_tables in memory, and Start and StartIn run an aggregator with its
// socket. Only tests import it. Read kernel.go and daemon.go first.
package aggregatortest
