package migration

import (
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

var (
	modesFlag = flag.String("migration.modes", "iptables-legacy", "the modes of kube-proxy, of nftables, iptables-nft and iptables-legacy")
	staleFlag = flag.Duration("migration.stale", 5*time.Second, "how long after it left the Service a pod may be chosen; a busy machine keeps kube-proxy waiting for more than a second")
	// CI updates all nodes at the same time; -migration.unavailable 10% updates them in turn.
	unavailableFlag = flag.String("migration.unavailable", "100%", "maxUnavailable of the DaemonSet in the test of upgrades")
)

// earlier is the commit of the earlier weft. Its state directory has version 1, and its rules differ in
// one rule of each family.
const earlier = "e392371b74c1cda0fe97ac84532e924e49f8f5a9"

const (
	binDir = "../bin/migration"
	logDir = binDir + "/logs"
	runDir = "/run/migration"
)

// kube-proxy and the containers must be root outside of a user namespace.
var tests = suite.Suite{
	Name: "migration", Bin: binDir, Root: true,
	Tools: []string{"nft", "iptables", "ip6tables", "conntrack", "ip"}, Packages: "nftables, iptables, conntrack and iproute2",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "(all of the control plane: minutes when the build cache is cold)", "..", "./cmd/controlplane"),
		suite.Kubernetes("node", "(the kubelet: minutes when the build cache is cold)", "..", "./cmd/node"),
		{Name: "container", Dir: "..", Package: "./cmd/container", Flags: []string{"-ldflags", "-s -w"}, Env: []string{"CGO_ENABLED=0"}},
		suite.Kubernetes("agnhost", "", "..", "k8s.io/kubernetes/test/images/agnhost"),
		suite.Kubernetes("kube-proxy", "", "..", "./differential/kubeproxy"),
		suite.Weft("../../.."),
		suite.Earlier("weft-earlier", "../../..", earlier),
	},
}

func TestMain(m *testing.M) { tests.Main(m) }

// an absolute path
func program(name string) string {
	path, err := filepath.Abs(tests.Path(name))
	if err != nil {
		panic(err) // the working directory is gone
	}
	return path
}
