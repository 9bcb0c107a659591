package e2e

import (
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

var programs = suite.Suite{
	Name: "e2e", Bin: "bin",
	Tools: []string{"nft", "setpriv"}, Packages: "nftables and util-linux",
	Programs: []suite.Program{
		suite.Kubernetes("controlplane", "(kube-apiserver and etcd: minutes when the build cache is cold)", ".", "./cmd/controlplane"),
		suite.EarlierKubernetes("earlier", "1.36"),
		suite.EarlierKubernetes("earlier", "1.35"),
		suite.Weft("../.."),
	},
}

func TestMain(m *testing.M) { programs.Main(m) }

func binary(name string) string { return programs.Path(name) }
