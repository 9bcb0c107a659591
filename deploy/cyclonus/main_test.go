package cyclonus

import (
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

// What the run leaves behind, and what is private to it.
const (
	binDir = "bin"
	logDir = "bin/logs"
	runDir = "/run/cyclonus"
)

// tests is the program that the tests run, and how they get their namespaces.
var tests = suite.Suite{
	Name: "cyclonus", Bin: binDir,
	Tools: []string{"nft"}, Packages: "nftables",
	Programs: []suite.Program{suite.Weft("../..")},
}

func TestMain(m *testing.M) { tests.Main(m) }
