package takeover

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft"
)

// peerTable is the name of the tables of kube-proxy's nftables mode.
const peerTable = "kube-proxy"

// families are the families of both proxies, in the order of reports.
var families = []nft.Family{nft.FamilyIP, nft.FamilyIP6}

// weftTable is the name of weft's tables for Services.
func weftTable(f nft.Family) nft.TableID { return nft.TableID{Family: f, Name: render.Table} }

// tables are the tables of iptables in which kube-proxy has chains, with the names of the
// chains: of mode iptables, and of mode ipvs.
var tables = []struct {
	name   string
	chains []string
	// prefixes are the prefixes of the chains of Services and endpoints.
	prefixes []string
}{
	{
		name: "nat",
		chains: []string{
			"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-POSTROUTING", "KUBE-MARK-MASQ", "KUBE-PROXY-CANARY",
			"KUBE-NODE-PORT", "KUBE-LOAD-BALANCER",
		},
		prefixes: []string{"KUBE-SVC-", "KUBE-SVL-", "KUBE-FW-", "KUBE-EXT-", "KUBE-SEP-"},
	},
	{
		name: "filter",
		chains: []string{
			"KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-FORWARD", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL", "KUBE-PROXY-CANARY",
			"KUBE-NODE-PORT", "KUBE-SOURCE-RANGES-FIREWALL", "KUBE-IPVS-FILTER", "KUBE-IPVS-OUT-FILTER",
		},
	},
	{name: "mangle", chains: []string{"KUBE-PROXY-CANARY"}},
}

// isPeers reports whether a chain of an iptables table is kube-proxy's.
func isPeers(table, chain string) bool {
	for _, t := range tables {
		if t.name == table {
			return slices.Contains(t.chains, chain) ||
				slices.ContainsFunc(t.prefixes, func(p string) bool { return strings.HasPrefix(chain, p) })
		}
	}
	return false
}

// Label is the label of a Node that says which proxy its Services have. The DaemonSet of a
// weft that replaces kube-proxy node by node selects the values Beside and Weft, that of
// kube-proxy all but Weft.
const Label = "weft.dev/proxy"

// The values of Label. A Node without it has kube-proxy alone.
const (
	// Beside is a node on which weft runs beside kube-proxy.
	Beside = "beside"
	// Weft is a node on which weft runs alone.
	Weft = "weft"
)

// The reasons of the events of a Node: what kube-proxy left is removed, and weft's rules are about to
// go because those of kube-proxy are in force.
const (
	ReasonTookOver   = "WeftTookOver"
	ReasonHandedOver = "WeftHandedOver"
)
