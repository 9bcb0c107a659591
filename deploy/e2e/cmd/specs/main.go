// Command specs is Kubernetes' own end-to-end test program with only the sig-network specs, compiled
// unmodified from k8s.io/kubernetes at the version of go.mod. Package conformance/specs runs it, with ginkgo:
//
//	go build -o bin/specs.test ./cmd/specs
//	bin/specs.test --list-tests
//
// It does the work of $KUBERNETES/test/e2e/e2e_test.go, which cannot be imported. It is not a Go test, so that
// `go test ./...` does not run it; ginkgo requires a name that ends in .test.
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

	// Package e2e itself imports test/e2e/common, with common/network.
	_ "k8s.io/kubernetes/test/e2e/invariants"
	_ "k8s.io/kubernetes/test/e2e/network"

	// Configuration of the framework.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/utils/ktesting/format"
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
