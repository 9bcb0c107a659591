// Command node is a node of a test cluster. `node kubelet` is the kubelet with its container runtime:
// it runs in the node's network namespace until SIGTERM, and then ends all pods. Its flags are in
// [parseKubelet].
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

const usage = "usage: node kubelet [flags]"

func run(args []string, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, usage)
		return 2
	}
	switch args[0] {
	case "kubelet":
		return exit(runKubelet(args[1:], stderr), "node kubelet", stderr)
	default:
		fmt.Fprintf(stderr, "run node: unknown verb %q\n%s\n", args[0], usage)
		return 2
	}
}

func exit(err error, verb string, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	default:
		fmt.Fprintf(stderr, "%s: %v\n", verb, err)
		return 1
	}
}
