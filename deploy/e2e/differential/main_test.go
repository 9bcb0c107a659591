package differential

import (
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

// minor versions of kube-proxy
const current, earlier = "1.37", "1.36"

// The programs are not package e2e's, whose tests may run at the same time.
const (
	binDir = "../bin/differential"
	logDir = "../bin/differential/logs"
	runDir = "/run/differential"
)

// kube-proxy must be root outside of a user namespace.
var tests = suite.Suite{
	Name: "differential", Bin: binDir, Root: true,
	Tools: []string{"nft", "iptables", "ip6tables", "conntrack", "ip"}, Packages: "nftables, iptables, conntrack and iproute2",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "", "..", "./cmd/controlplane"),
		suite.Kubernetes("kube-proxy", "", "..", "./differential/kubeproxy"),
		suite.EarlierKubernetes("../earlier", earlier),
		suite.Weft("../../.."),
	},
}

func TestMain(m *testing.M) { tests.Main(m) }

func program(name string) string { return tests.Path(name) }
