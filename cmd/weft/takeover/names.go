package takeover

import (
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft"
)

const peerTable = "kube-proxy"

// Drain is the default time for connections through IPVS: most requests end within a minute, and
// pooled connections do not end by themselves.
const Drain = 2 * time.Minute

// in the order of reports
var families = []nft.Family{nft.FamilyIP, nft.FamilyIP6}

func weftTable(f nft.Family) nft.TableID { return nft.TableID{Family: f, Name: render.Table} }

// tables has kube-proxy's chains of the modes iptables and ipvs.
var tables = []struct {
	name   string
	chains []string
	// prefixes of chains of Services and endpoints
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

func isPeers(table, chain string) bool {
	for _, t := range tables {
		if t.name == table {
			return slices.Contains(t.chains, chain) ||
				slices.ContainsFunc(t.prefixes, func(p string) bool { return strings.HasPrefix(chain, p) })
		}
	}
	return false
}

// Label is the label of a Node that selects its proxy: weft's DaemonSet selects the values Beside
// and Weft, kube-proxy's all but Weft.
const Label = "weft.dev/proxy"

// Without the label, kube-proxy runs alone.
const (
	// Beside runs weft beside kube-proxy.
	Beside = "beside"
	// Weft runs weft alone.
	Weft = "weft"
)

// Reasons of events of a Node.
const (
	// ReasonTookOver: weft has removed kube-proxy's rules.
	ReasonTookOver = "WeftTookOver"
	// ReasonHandedOver: kube-proxy's rules are in force, and weft removes its own.
	ReasonHandedOver = "WeftHandedOver"
)
