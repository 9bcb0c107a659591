// Command controlplane is etcd and kube-apiserver in one binary, which halves the time to link
// them: the first argument, "etcd" or "kube-apiserver", says which one this process is; the others are its own flags.
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
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: controlplane etcd|kube-apiserver [flags]")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "etcd":
		etcdmain.Main(os.Args[1:])
	case "kube-apiserver":
		command := app.NewAPIServerCommand()
		command.SetArgs(os.Args[2:])
		os.Exit(cli.Run(command))
	default:
		fmt.Fprintf(os.Stderr, "run controlplane: unknown program %q: want etcd or kube-apiserver\n", os.Args[1])
		os.Exit(2)
	}
}
