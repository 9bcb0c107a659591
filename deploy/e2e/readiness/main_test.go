package readiness

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

var changesFlag = flag.Int("readiness.changes", 10, "failures of a pod that are compared with the EndpointSlice")

const (
	binDir = "../bin/readiness"
	logDir = binDir + "/logs"
	runDir = "/run/readiness"
)

// The containers must be root outside of a user namespace.
var tests = suite.Suite{
	Name: "readiness", Bin: binDir, Root: true,
	Tools: []string{"nft", "ip"}, Packages: "nftables and iproute2",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "(all of the control plane: minutes when the build cache is cold)", "..", "./cmd/controlplane"),
		suite.Kubernetes("node", "(the kubelet: minutes when the build cache is cold)", "..", "./cmd/node"),
		{Name: "container", Dir: "..", Package: "./cmd/container", Flags: []string{"-ldflags", "-s -w"}, Env: []string{"CGO_ENABLED=0"}},
		suite.Kubernetes("agnhost", "", "..", "k8s.io/kubernetes/test/images/agnhost"),
		suite.Weft("../../.."),
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
