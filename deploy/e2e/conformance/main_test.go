package conformance

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

var (
	proxiesFlag = flag.String("conformance.proxy", "", "proxies to run the specs with, in this order: weft, kube-proxy; empty skips everything")
	focusFlag   = flag.String("conformance.focus", "", "regular expression of the names of specs to run")
	shortFlag   = flag.Bool("conformance.short", false, "run the specs of short.txt only, on three nodes")
	runsFlag    = flag.Int("conformance.runs", 1, "number of runs with each proxy")
	updateFlag  = flag.Bool("conformance.update", false, "write testdata/results.tsv anew, in place of a comparison with it")
	chaosFlag   = flag.Bool("conformance.chaos", false, "kill weft on every node every two seconds, and flush the rulesets")
	holdFlag    = flag.Bool("conformance.hold", false, "start the first world, and keep it until the test is interrupted")
)

const (
	binDir = "../bin/conformance"
	logDir = binDir + "/logs"
	runDir = "/run/conformance"
	// reportDir has the results of each run.
	reportDir = binDir + "/report"
)

// kube-proxy and the containers must be root outside of a user namespace.
var tests = suite.Suite{
	Name: "conformance", Bin: binDir, Root: true,
	Tools: []string{"nft", "conntrack", "ip", "curl", "dig", "nc"}, Packages: "nftables, conntrack, iproute2, curl, bind9-dnsutils and netcat-openbsd",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "(all of the control plane: minutes when the build cache is cold)", "..", "./cmd/controlplane"),
		suite.Kubernetes("node", "(the kubelet: minutes when the build cache is cold)", "..", "./cmd/node"),
		{Name: "container", Dir: "..", Package: "./cmd/container", Flags: []string{"-ldflags", "-s -w"}, Env: []string{"CGO_ENABLED=0"}},
		suite.Kubernetes("specs.test", "(Kubernetes' own specs: minutes when the build cache is cold)", "..", "./cmd/specs"),
		suite.Kubernetes("agnhost", "", "..", "k8s.io/kubernetes/test/images/agnhost"),
		suite.Kubernetes("regression-issue-74839", "", "..", "k8s.io/kubernetes/test/images/regression-issue-74839"),
		suite.Kubernetes("clusterpolicy", "", "..", "./cmd/clusterpolicy"),
		suite.Kubernetes("kube-proxy", "", "..", "./differential/kubeproxy"),
		{Name: "ginkgo", Dir: "..", Package: "github.com/onsi/ginkgo/v2/ginkgo"},
		{Name: "coredns", Dir: "../coredns", Package: "."},
		suite.Weft("../../.."),
	},
}

func TestMain(m *testing.M) {
	flag.Parse()
	if *proxiesFlag == "" {
		os.Exit(m.Run())
	}
	tests.Main(m)
}

func program(name string) string { return tests.Path(name) }

func proxies() []string {
	return strings.FieldsFunc(*proxiesFlag, func(r rune) bool { return r == ',' })
}

func nodes() int {
	if *shortFlag {
		return 3
	}
	return 6
}
