package install

import (
	"flag"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

var (
	kindsFlag  = flag.String("install.kinds", "kind,kubeadm without kube-proxy,k3s,bare", "the kinds of clusters to install on; all means all of them")
	slowFlag   = flag.Bool("install.slow", false, "also take the wrong turns of which the user is told late")
	repository = "../../.."
)

// The programs are mostly package migration's, to link them once.
const (
	binDir = "../bin/migration"
	logDir = "../bin/install/logs"
	runDir = "/run/install"
)

var tests = suite.Suite{
	Name: "install", Bin: binDir, Root: true,
	Tools: []string{"nft", "iptables", "ip", "systemctl", "dpkg"}, Packages: "nftables, iptables, iproute2, systemd and dpkg",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "(all of the control plane: minutes when the build cache is cold)", "..", "./cmd/controlplane"),
		suite.Kubernetes("node", "(the kubelet: minutes when the build cache is cold)", "..", "./cmd/node"),
		{Name: "container", Dir: "..", Package: "./cmd/container", Flags: []string{"-ldflags", "-s -w"}, Env: []string{"CGO_ENABLED=0"}},
		suite.Kubernetes("agnhost", "", "..", "k8s.io/kubernetes/test/images/agnhost"),
		suite.Kubernetes("kube-proxy", "", "..", "./differential/kubeproxy"),
		{Name: "coredns", Dir: "../coredns", Package: "."},
		{Name: "helm", Dir: "../../helm", Package: "helm.sh/helm/v3/cmd/helm"},
		{Name: "release", Dir: "../../../.ci/release", Package: "."},
		suite.Weft("../../.."),
	},
}

func TestMain(m *testing.M) { tests.Main(m) }

func program(name string) string { return tests.Path(name) }
