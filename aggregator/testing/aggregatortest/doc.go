// Package aggregatortest has test helpers for the aggregator, its server and its clients: Kernel,
// nf_tables in memory, and Start and StartIn, a running aggregator. Only tests import it.
package aggregatortest
