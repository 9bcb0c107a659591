// Command kubeproxy is the real kube-proxy, of the version that weft is
// measured against: what upstream's cmd/kube-proxy is, built from this module.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_* metrics, as the released binary has
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
)

func main() {
	os.Exit(cli.Run(app.NewProxyCommand()))
}
