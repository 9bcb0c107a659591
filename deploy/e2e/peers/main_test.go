package peers

import (
	"flag"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

const module = "../../.."

const (
	binDir = "../bin/peers"
	logDir = "../bin/peers/logs"
	runDir = "/run/peers"
)

// The defaults are for a short run with `go test ./...`.
var (
	peerFlag     = flag.String("peers.engine", "", "another engine: NAME=PROGRAM ARGUMENTS...")
	runsFlag     = flag.Int("peers.runs", 1, "how often each engine is started and measured, in turns")
	changesFlag  = flag.Int("peers.changes", 4, "changes of a policy that are measured in each run")
	patienceFlag = flag.Duration("peers.patience", 5*time.Minute, "how long an engine may take for one change or its start")
)

var tests = suite.Suite{
	Name: "peers", Bin: binDir,
	Tools: []string{"nft"}, Packages: "nftables",
	Programs: []suite.Program{suite.Weft(module), {
		Name: replay, Dir: module, Package: "./frontends/testing/apitest/replay", Flags: []string{"-trimpath"}, Env: []string{"CGO_ENABLED=0"},
	}},
}

func TestMain(m *testing.M) {
	flag.Parse()
	tests.Main(m)
}
