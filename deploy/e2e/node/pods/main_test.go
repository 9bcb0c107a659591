package pods

import (
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

const (
	binDir = "../../bin/node"
	logDir = "../../bin/node/logs"
	runDir = "/run/node"
)

var programs = suite.Suite{
	Name: "node", Bin: binDir, Root: true,
	Tools: []string{"nft", "ip", "curl"}, Packages: "nftables, iproute2 and curl",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "(kube-apiserver and etcd: minutes when the build cache is cold)", "../..", "./cmd/controlplane"),
		suite.Kubernetes("node", "(the kubelet)", "../..", "./cmd/node"),
		// Programs in the containers.
		suite.Kubernetes("container", "", "../..", "./cmd/container"),
		suite.Kubernetes("agnhost", "", "../..", "k8s.io/kubernetes/test/images/agnhost"),
	},
}

func TestMain(m *testing.M) { programs.Main(m) }
