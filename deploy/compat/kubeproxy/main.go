// Command kubeproxy is Kubernetes' kube-proxy, for the tests of package ipvs. Its module keeps
// Kubernetes out of the others.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
)

func main() { os.Exit(cli.Run(app.NewProxyCommand())) }
