package cyclonus

import (
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

// The logs of a run, and its private files.
const (
	binDir = "bin"
	logDir = "bin/logs"
	runDir = "/run/cyclonus"
)

var tests = suite.Suite{
	Name: "cyclonus", Bin: binDir,
	Tools: []string{"nft"}, Packages: "nftables",
	Programs: []suite.Program{suite.Weft("../..")},
}

func TestMain(m *testing.M) { tests.Main(m) }
