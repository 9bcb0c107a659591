// Command specs is Kubernetes' own end-to-end test program with the specs of
// sig-network alone: the specs of k8s.io/kubernetes at the version of go.mod,
// compiled unmodified. Package conformance/specs runs it, with ginkgo:
//
//	go build -o bin/specs.test ./cmd/specs
//	bin/specs.test --list-tests
//
// It does what $KUBERNETES/test/e2e/e2e_test.go does, which cannot be imported
// because it is a test file. It imports fewer packages of specs. The program is
// not a test of Go's own, so that `go test ./...` does not run it without a cluster;
// its name must end in .test, so that ginkgo runs it as one.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"

	conformance "k8s.io/kubernetes/test/conformance/testdata"
	"k8s.io/kubernetes/test/e2e"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	"k8s.io/kubernetes/test/e2e/invariants/logcheck"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	"k8s.io/kubernetes/test/fixtures"

	// The features and the specs' labels.
	_ "k8s.io/kubernetes/test/e2e/feature"

	// The specs. Package e2e itself imports test/e2e/common, with common/network.
	_ "k8s.io/kubernetes/test/e2e/invariants"
	_ "k8s.io/kubernetes/test/e2e/network"

	// What configures the framework.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/utils/format"
)

func main() {
	testing.Init()
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	logcheck.RegisterFlags(flag.CommandLine)
	results := flag.String("results", "", "`file` that a line of JSON is appended to for each spec that ended")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "specs: unknown arguments %q\n", flag.Args())
		os.Exit(2)
	}
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	testfiles.AddFileSource(fixtures.GetTestFixturesFS())
	testfiles.AddFileSource(conformance.GetConformanceTestdataFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	// Not earlier: the line before goes through all specs once without running them.
	if *results != "" {
		if err := record(*results); err != nil {
			fmt.Fprintf(os.Stderr, "specs: %v\n", err)
			os.Exit(1)
		}
	}
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "TestE2E", F: e2e.RunE2ETests}}, nil, nil)
}
