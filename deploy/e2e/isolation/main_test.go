package isolation

import (
	"flag"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

const (
	logDir = "../bin/isolation/logs"
	runDir = "/run/isolation"
)

var write = flag.Bool("isolation.write", false, "write the table of deploy/docs/policy.md anew")

var programs = suite.Suite{
	Name: "isolation", Bin: "../bin/isolation",
	Tools: []string{"nft", "ip", "conntrack"}, Packages: "nftables, iproute2 and conntrack",
	Programs: []suite.Program{suite.Weft("../../..")},
}

func TestMain(m *testing.M) { programs.Main(m) }
