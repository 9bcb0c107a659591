package render

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	// Fragment is the name of the fragment.
	Fragment = "services"
	// Table is the name of its tables, one in each family.
	Table = "weft"
	// DefaultMasqueradeBit is that of kube-proxy.
	DefaultMasqueradeBit = 14
)

// Config describes the ruleset of the node.
type Config struct {
	// Families are those that this node has.
	Families [model.NumFamilies]bool
	// Detect is how flows from pods are recognized.
	Detect Detect
	// MasqueradeAll masquerades every flow to a ClusterIP.
	MasqueradeAll bool
	// MasqueradeBit is the bit of the packet mark, 0 to 31, that requests masquerading. 0
	// is bit 0, not the default.
	MasqueradeBit int
	// NodePortAddresses are the configured ones of model.NodePortAddressesOf.
	NodePortAddresses []netip.Prefix
	// Counters is what the rules count.
	Counters Counters
}

// Detect is how flows from pods are recognized (kube-proxy's detectLocal). Flows to a
// ClusterIP from other sources are masqueraded, and pods reach all endpoints of a Service
// whose externalTrafficPolicy is Local. If no flow can be recognized, flows to a
// ClusterIP are never masqueraded.
type Detect struct {
	Mode DetectMode
	// CIDRs are for DetectCIDRs.
	CIDRs []netip.Prefix
	// Interface is the name of the interface of pods, or the prefix of the names, for
	// DetectInterface and DetectInterfacePrefix.
	Interface string
}

// DetectMode is a way to recognize flows from pods.
type DetectMode uint8

// The values of DetectMode, with those of kube-proxy.
const (
	// DetectCIDRs: the source is inside Detect.CIDRs (ClusterCIDR). Without CIDRs no flow
	// is recognized.
	DetectCIDRs DetectMode = iota
	// DetectNode: the source is inside the PodCIDRs of the Node (NodeCIDR).
	DetectNode
	// DetectInterface: the packet came in by the interface (BridgeInterface).
	DetectInterface
	// DetectInterfacePrefix: the packet came in by an interface whose name has the prefix
	// (InterfaceNamePrefix).
	DetectInterfacePrefix
)

func (c *Config) validate() error {
	var errs []error
	if c.MasqueradeBit < 0 || c.MasqueradeBit > 31 {
		errs = append(errs, fmt.Errorf("masquerade bit %d is not in 0 to 31", c.MasqueradeBit))
	}
	for _, l := range [][]netip.Prefix{c.Detect.CIDRs, c.NodePortAddresses} {
		for _, p := range l {
			if !p.IsValid() || p.Addr().Is4In6() {
				errs = append(errs, fmt.Errorf("prefix %s is not an IPv4 or IPv6 prefix", p))
			}
		}
	}
	errs = append(errs, c.Detect.validate())
	if c.Families == ([model.NumFamilies]bool{}) {
		errs = append(errs, errors.New("no IP family is available on this node"))
	}
	return errors.Join(errs...)
}

// prefixes returns the prefixes of one family: masked, sorted, and without those inside
// another one.
func prefixes(in []netip.Prefix, f model.Family) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range in {
		if model.FamilyOf(p.Addr()) == f {
			all = append(all, p.Masked())
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	var out []netip.Prefix
	for _, p := range all {
		// They are sorted by address and then length, so a prefix that contains p
		// precedes it.
		if n := len(out); n > 0 && out[n-1].Bits() <= p.Bits() && out[n-1].Contains(p.Addr()) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// family has nft's keywords for a family.
type family struct {
	// table is the family of the table, and the keyword of its addresses in rules.
	table    string
	loopback string
}

// families are the keywords by family.
var families = [model.NumFamilies]family{{table: "ip", loopback: "127.0.0.0/8"}, {table: "ip6", loopback: "::1"}}
