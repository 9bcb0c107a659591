package e2e

import (
	"flag"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

var programs = suite.Suite{
	Name: "e2e", Bin: "bin",
	Tools: []string{"nft", "setpriv"}, Packages: "nftables and util-linux",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "(kube-apiserver and etcd: minutes when the build cache is cold)", ".", "./cmd/controlplane"),
		suite.Weft("../.."),
	},
}

func TestMain(m *testing.M) {
	flag.Parse()
	for _, minor := range earlier() {
		programs.Programs = append(programs.Programs, suite.EarlierKubernetes("earlier", minor))
	}
	programs.Main(m)
}

func binary(name string) string { return programs.Path(name) }
