package cluster

import (
	"fmt"
	"os"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

// As a child process, TestMain is a cluster's program.
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
