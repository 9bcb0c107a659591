package container

import (
	"os"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

// As a child process, TestMain is a container's first process, or executes a command in it.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "init":
			Report(Init())
			os.Exit(126)
		case "exec":
			status, err := Exec()
			if err != nil {
				Report(err)
				status = 126
			}
			os.Exit(status)
		}
	}
	programs := suite.Suite{Name: "container", Bin: "../../bin/container", Root: true}
	programs.Main(m)
}
