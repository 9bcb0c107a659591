// Command earlier is kube-apiserver and kube-proxy of an earlier minor version of Kubernetes, one for each
// file of modules: go.mod is 1.36, 1.35.mod is 1.35. The first argument selects the program; the others are
// its flags.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_* metrics, as in the released binaries
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	programs := map[string]func() *cobra.Command{"kube-apiserver": kubeapiserver.NewAPIServerCommand, "kube-proxy": kubeproxy.NewProxyCommand}
	if len(args) == 0 || programs[args[0]] == nil {
		fmt.Fprintln(os.Stderr, "usage: earlier kube-apiserver|kube-proxy [flags]")
		return 2
	}
	command := programs[args[0]]()
	command.SetArgs(args[1:])
	return cli.Run(command)
}
