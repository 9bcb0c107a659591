package differential

import (
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

// What the run needs and leaves behind. The programs are not those of package
// e2e, whose tests may run at the same time.
const (
	binDir = "../bin/differential"
	logDir = "../bin/differential/logs"
	runDir = "/run/differential"
)

// tests are the programs that the tests run, and how they get their namespaces. kube-proxy must
// be root, and not of a user namespace.
var tests = suite.Suite{
	Name: "differential", Bin: binDir, Root: true,
	Tools: []string{"nft", "iptables", "ip6tables", "conntrack", "ip"}, Packages: "nftables, iptables, conntrack and iproute2",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "", "..", "./cmd/controlplane"),
		suite.Kubernetes("kube-proxy", "", "..", "./differential/kubeproxy"),
		suite.Weft("../../.."),
	},
}

func TestMain(m *testing.M) { tests.Main(m) }

// program is the path of a program.
func program(name string) string { return tests.Path(name) }
