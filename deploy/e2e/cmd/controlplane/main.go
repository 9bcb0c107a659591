// Command controlplane is a control plane in one binary, to save link time: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler. The first argument selects the program; the others are
// its flags. A link named kubectl is kubectl.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_* metrics, as in the released binaries
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		// It prints its errors and ends the process.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flags]")
		return 2
	}
	var command *cobra.Command
	switch args[0] {
	case "etcd":
		etcdmain.Main(args)
		return 0
	case "kube-apiserver":
		command = kubeapiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = kubecontrollermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = kubescheduler.NewSchedulerCommand()
	default:
		fmt.Fprintf(os.Stderr, "run controlplane: unknown program %q: want etcd, kube-apiserver, kube-controller-manager or kube-scheduler\n", args[0])
		return 2
	}
	command.SetArgs(args[1:])
	return cli.Run(command)
}
