// Command container is the first process of every container of a test's node (container init), and of
// every command in a container (container exec): see package node/container.
package main

import (
	"fmt"
	"os"

	"github.com/weft-proxy/weft/deploy/e2e/node/container"
)

func main() { os.Exit(run(os.Args[1:])) }

// The shell's exit status for a command that cannot be started.
const failed = 126

func run(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "init":
		container.Report(container.Init())
		return failed
	case len(args) == 1 && args[0] == "exec":
		status, err := container.Exec()
		if err != nil {
			container.Report(err)
			return failed
		}
		return status
	default:
		fmt.Fprintln(os.Stderr, "usage: container init|exec")
		return 2
	}
}
