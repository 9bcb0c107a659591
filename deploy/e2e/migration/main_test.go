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
	// The nodes of an update are updated at the same time in CI, and in turn with -migration.unavailable 10%.
	unavailableFlag = flag.String("migration.unavailable", "100%", "maxUnavailable of the DaemonSet in the test of upgrades")
)

// earlier is the commit of the weft that is upgraded from, and downgraded to: the last one whose state directory
// had version 1, before weft recorded a history and updates that wait for a confirmation. Its rules
// differ in one rule of each family.
const earlier = "e392371b74c1cda0fe97ac84532e924e49f8f5a9"

// What the run needs and leaves behind.
const (
	binDir = "../bin/migration"
	logDir = binDir + "/logs"
	runDir = "/run/migration"
)

// tests are the programs that the tests run, and how they get their namespaces. kube-proxy and the containers must
// be root's, and not of a user namespace.
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

// program is the absolute path of a program.
func program(name string) string {
	path, err := filepath.Abs(tests.Path(name))
	if err != nil {
		panic(err) // the working directory is gone
	}
	return path
}
