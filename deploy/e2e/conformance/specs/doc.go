// Package specs runs Kubernetes' own sig-network specs against a cluster. cmd/specs compiles them unmodified;
// ginkgo runs it in several processes, and the [Serial] specs last. Read run.go first.
//
// In come a kubeconfig, kubectl, the two programs and the selection: all of sig-network without skip.txt, the
// specs of short.txt, or matches of an expression. Out come a line for each ended spec, and in Config.Report:
//
//	specs.jsonl          a line for each spec, written as it ended
//	ginkgo/report.json   ginkgo's own report, with the output of failed specs; package report reads it
//	junit_01.xml         the framework's JUnit report
//	ginkgo.log           the output of ginkgo
//
// A pattern of skip.txt without a match is an error.
//
// # Concurrency
//
// Run blocks until ginkgo has ended. Two runs may not share a cluster, because of the [Serial] specs.
//
// # Errors
//
// [ErrFailed] means that specs failed; with all other errors results are missing.
package specs
