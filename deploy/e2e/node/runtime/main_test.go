package runtime

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

var programs = suite.Suite{
	Name: "runtime", Bin: "../../bin/runtime", Root: true,
	Tools: []string{"nft", "curl"}, Packages: "nftables and curl",
	Programs: []suite.Program{suite.Kubernetes("container", "", "../..", "./cmd/container")},
}

// As a child process, TestMain is a runtime that a test kills.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "runtime" {
		r, err := New(Config{Dir: os.Args[2], Programs: os.Args[3]})
		if err == nil {
			err = r.Serve(context.Background(), os.Args[4])
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs.Main(m)
}
