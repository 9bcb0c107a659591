// Command controlplane is etcd, kube-apiserver and the EndpointSlice controller in one binary, which
// takes a third of the time to link: the first argument says which one this process is; the others are its own flags.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_* metrics, as the released binary has
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: controlplane etcd|kube-apiserver|endpointslice-controller [flags]")
		return 2
	}
	switch args[0] {
	case "etcd":
		etcdmain.Main(args)
		return 0
	case "kube-apiserver":
		command := app.NewAPIServerCommand()
		command.SetArgs(args[1:])
		return cli.Run(command)
	case "endpointslice-controller":
		if err := runController(args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "endpointslice-controller:", err)
			return 1
		}
		return 0
	default:
		fmt.Fprintf(os.Stderr, "run controlplane: unknown program %q: want etcd, kube-apiserver or endpointslice-controller\n", args[0])
		return 2
	}
}
