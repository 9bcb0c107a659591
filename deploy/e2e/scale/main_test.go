package scale

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

const (
	binDir = "../bin/scale"
	logDir = "../bin/scale/logs"
	runDir = "/run/scale"
)

// The defaults are for a short run with `go test ./...`; the Makefile has the others.
var (
	sizesFlag        = flag.String("scale.sizes", "100x10", "SERVICESxENDPOINTS, several with commas")
	proxiesFlag      = flag.String("scale.proxy", "weft", "who follows: weft, kube-proxy, or both with a comma")
	duration         = flag.Duration("scale.duration", 3*time.Second, "length of each phase that has no end of its own")
	restFlag         = flag.Duration("scale.rest", 2*time.Second, "how long after a start or a load the memory is read; weft returns what is free after several seconds")
	policiesFlag     = flag.String("scale.policies", "2000x20x200", "PODSxNAMESPACESxPOLICIES of a cluster with network policies; empty for none")
	explainFlag      = flag.String("scale.explain", "100x10", "SERVICESxENDPOINTS of the node on which weft explain is measured; empty for none")
	connectFlag      = flag.String("scale.connect", "", "whose rules TestConnections compares: weft, kube-proxy, kube-proxy-iptables, with commas; empty skips it")
	connectSizesFlag = flag.String("scale.connect-sizes", "10x2,1000x2,20000x2", "SERVICESxENDPOINTS of TestConnections, with commas")
	changesFlag      = flag.Int("scale.changes", 10, "isolated changes of each kind in the cluster with network policies")
	runsFlag         = flag.Int("scale.runs", 1, "how often everything is measured")
	againstFlag      = flag.String("scale.against", "", "commit whose weft TestAgainst runs beside this one; empty skips it")
	turnsFlag        = flag.Int("scale.turns", 10, "turns of each weft in each phase of TestAgainst, each as long as -scale.duration")
)

const (
	base      = "base"
	replay    = "replay"
	weft      = "weft"
	kubeProxy = "kube-proxy"
	// the same program in its other mode
	kubeProxyIPTables = "kube-proxy-iptables"
)

func list(flag *string) []string {
	return strings.FieldsFunc(*flag, func(r rune) bool { return r == ',' })
}

// Only programs that the flags need are built.
var tests = suite.Suite{
	Name: "scale", Bin: binDir,
	Tools: []string{"nft", "ip"}, Packages: "nftables and iproute2",
}

func TestMain(m *testing.M) {
	flag.Parse()
	const module = "../../.."
	tests.Programs = append(tests.Programs, suite.Weft(module), suite.Program{
		Name: replay, Dir: module, Package: "./frontends/testing/apitest/replay", Flags: []string{"-trimpath"}, Env: []string{"CGO_ENABLED=0"},
	})
	if *againstFlag != "" {
		tests.Programs = append(tests.Programs, suite.Earlier(base, module, *againstFlag))
	}
	if strings.Contains(*proxiesFlag+*connectFlag, kubeProxy) {
		tests.Programs = append(tests.Programs, suite.Kubernetes(kubeProxy, "", "..", "./differential/kubeproxy"))
		tests.Root = true // kube-proxy refuses a user namespace
	}
	tests.Main(m)
}
