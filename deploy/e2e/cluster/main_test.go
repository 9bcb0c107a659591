package cluster

import (
	"fmt"
	"os"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

// TestMain is also the programs that a cluster runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if program := standIns[os.Args[1]]; program != nil {
			err := program(parseFlags(os.Args[2:]))
			fmt.Println(err)
			os.Exit(1)
		}
	}
	programs := suite.Suite{Name: "cluster", Bin: "../bin/cluster"}
	programs.Main(m)
}
