// Package aggregatortest has shared test helpers for the aggregator, its server and its clients.
// Kernel is nf_tables in memory; Start and StartIn run an aggregator with its socket. Only tests
// import it. Read kernel.go and daemon.go first.
package aggregatortest
