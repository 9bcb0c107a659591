// Package aggregatortest is for tests of the aggregator and of what stands
// above it: Kernel is a kernel in memory, and Start runs an aggregator with its
// socket and a client. It is imported by tests only.
package aggregatortest
