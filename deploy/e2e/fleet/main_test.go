package fleet

import (
	"flag"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

const module = "../../.."

const (
	binDir = "../bin/fleet"
	logDir = "../bin/fleet/logs"
	runDir = "/run/fleet"
)

const (
	nodesProgram = "fleet"
	controlPlane = "controlplane"
)

// The defaults are for a short run with `go test ./...`.
var (
	nodesFlag    = flag.Int("fleet.nodes", 200, "number of nodes")
	outageFlag   = flag.Duration("fleet.outage", 5*time.Second, "how long the API server is away, without its start")
	patienceFlag = flag.Duration("fleet.patience", 3*time.Minute, "how long the nodes may take until all watches are open")
)

var tests = suite.Suite{
	Name: "fleet", Bin: binDir,
	Tools: []string{"ip"}, Packages: "iproute2",
	Programs: []suite.Program{
		suite.Kubernetes(controlPlane, "(kube-apiserver and etcd: minutes when the build cache is cold)", "..", "./cmd/controlplane"),
		{Name: nodesProgram, Dir: module, Package: "./frontends/testing/apitest/fleet", Flags: []string{"-trimpath"}, Env: []string{"CGO_ENABLED=0"}},
	},
}

func TestMain(m *testing.M) {
	flag.Parse()
	tests.Main(m)
}
