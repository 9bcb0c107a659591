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
	// DefaultMasqueradeBit is kube-proxy's.
	DefaultMasqueradeBit = 14
)

// Config says what the node's ruleset is to look like.
type Config struct {
	// Families are those that this node can use.
	Families [model.Families]bool
	// Detect says which flows come from pods.
	Detect Detect
	// MasqueradeAll masquerades every flow to a ClusterIP.
	MasqueradeAll bool
	// MasqueradeBit is the bit of the packet mark, 0 to 31, that asks for
	// masquerading.
	MasqueradeBit int
	// NodePortAddresses are the local addresses that answer on NodePorts.
	// Empty means the addresses of the Node object, or before there is one
	// all local addresses but the loopback. A family that a non-empty list
	// leaves out has no NodePorts.
	NodePortAddresses []netip.Prefix
}

// Detect says how flows from pods are known (kube-proxy's detectLocal): those to
// a ClusterIP from elsewhere are masqueraded, and pods reach all endpoints of a
// Service whose externalTrafficPolicy is Local. Where no flow is known to come from
// a pod, flows to a ClusterIP are never masqueraded.
type Detect struct {
	Mode DetectMode
	// CIDRs are for DetectCIDRs.
	CIDRs []netip.Prefix
	// Interface is the name or the prefix of the name of the interfaces of pods,
	// for DetectInterface and DetectInterfacePrefix.
	Interface string
}

// DetectMode is a way to know flows from pods.
type DetectMode uint8

// The ways.
const (
	// DetectCIDRs: the source is inside Detect.CIDRs (ClusterCIDR). None means
	// that no flow is known to come from a pod.
	DetectCIDRs DetectMode = iota
	// DetectNode: the source is inside the PodCIDRs of the Node (NodeCIDR).
	DetectNode
	// DetectInterface: the packet came in by the interface (BridgeInterface).
	DetectInterface
	// DetectInterfacePrefix: the packet came in by an interface whose name
	// begins so (InterfaceNamePrefix).
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
	if c.Families == ([model.Families]bool{}) {
		errs = append(errs, errors.New("no IP family is available on this node"))
	}
	return errors.Join(errs...)
}

// prefixes returns the prefixes of one family: masked, sorted, and without
// those that lie in another.
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
		// Sorted by address and then length: what contains p came before it.
		if n := len(out); n > 0 && out[n-1].Bits() <= p.Bits() && out[n-1].Contains(p.Addr()) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// family is nft's words for a family.
type family struct {
	// table is the table's family, and what addresses are called in rules.
	table    string
	loopback string
}

func familyOf(f model.Family) family {
	if f == model.IPv4 {
		return family{table: "ip", loopback: "127.0.0.0/8"}
	}
	return family{table: "ip6", loopback: "::1"}
}
