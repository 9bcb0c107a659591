package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source/network"
)

// localhostNodePorts is the feature gate of NodePorts on loopback addresses. In kube-proxy it is by default
// disabled; in weft a loopback address in the list is enough.
const localhostNodePorts = "KubeProxyNFTablesLocalhostNodePorts"

const primary = "primary"

// nodePortWords are the words for prefixes.
var nodePortWords = map[string][]netip.Prefix{
	"localhost": {netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	"all":       {netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
}

// nodePorts converts a valid list.
func nodePorts(texts []string) model.NodePortList {
	var prefixes []netip.Prefix
	for _, text := range texts {
		if words, ok := nodePortWords[text]; ok {
			prefixes = append(prefixes, words...)
		} else if p, err := network.ParsePrefix(text); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	out := model.NodePorts(prefixes...)
	out.Primary = slices.Contains(texts, primary)
	return out
}

func (k *checker) nodePorts(texts []string) {
	for i, text := range texts {
		path := fmt.Sprintf("nodePortAddresses[%d]", i)
		if nodePortWords[text] != nil || text == primary {
			k.check(!slices.Contains(texts[:i], text), path, text, "this word once")
			continue
		}
		_, err := network.ParsePrefix(text)
		k.check(err == nil, path, text, wantPrefix+", or primary, localhost or all")
	}
}
