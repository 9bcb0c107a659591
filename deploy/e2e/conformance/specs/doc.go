// Package specs runs Kubernetes' own sig-network specs against a cluster. The specs are a
// program, cmd/specs, compiled from k8s.io/kubernetes unmodified; ginkgo's command
// line runs it in several processes at once, and the [Serial] specs after the others.
// Read run.go first.
//
// In come a kubeconfig, kubectl, the two programs and the selection: all of
// sig-network without skip.txt, the specs of short.txt, or those that match an expression.
// Out come a line for each spec as it ends, and in Config.Report:
//
//	specs.jsonl          a line for each spec, written as it ended
//	ginkgo/report.json   ginkgo's own report, with the output of failed specs; package report reads it
//	junit_01.xml         the framework's JUnit report
//	ginkgo.log           the output of ginkgo
//
// skip.txt has the specs that cannot run on this cluster, each with its reason. A pattern
// that matches no spec is an error, so that the list does not outlive what it is about.
//
// # Concurrency
//
// Run blocks until ginkgo has ended. Two runs may not share a cluster: the [Serial] specs want it
// for themselves.
//
// # Errors
//
// [ErrFailed] means that specs failed; all other errors mean that there are no results, or not all.
package specs
