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
	// Table is the name of the table in each family.
	Table = "weft"
	// DefaultMasqueradeBit is kube-proxy's default.
	DefaultMasqueradeBit = 14
)

// Config describes the ruleset of the node.
type Config struct {
	Families      [model.NumFamilies]bool
	Detect        Detect
	MasqueradeAll bool
	// MasqueradeBit is the packet mark bit, 0 to 31, that requests masquerading. 0 is not the default.
	MasqueradeBit     int
	NodePortAddresses model.NodePortList
	Loopback          [model.NumFamilies]model.LoopbackMode
	Counters          Counters
}

// Detect recognizes flows from pods (kube-proxy's detectLocal). Flows to a ClusterIP from other sources are
// masqueraded. Without a working detection, they are not.
type Detect struct {
	Mode  DetectMode
	CIDRs []netip.Prefix
	// name for DetectInterface, or prefix for DetectInterfacePrefix
	Interface string
}

// DetectMode is a way to recognize flows from pods.
type DetectMode uint8

const (
	// the source is in Detect.CIDRs (ClusterCIDR)
	DetectCIDRs DetectMode = iota
	// the source is in the Node's PodCIDRs (NodeCIDR)
	DetectNode
	// the input interface is the pods' interface (BridgeInterface)
	DetectInterface
	// the input interface has the prefix (InterfaceNamePrefix)
	DetectInterfacePrefix
)

func (c *Config) validate() error {
	var errs []error
	if c.MasqueradeBit < 0 || c.MasqueradeBit > 31 {
		errs = append(errs, fmt.Errorf("masquerade bit %d is not in 0 to 31", c.MasqueradeBit))
	}
	for _, l := range [][]netip.Prefix{c.Detect.CIDRs, c.NodePortAddresses.Prefixes} {
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

// prefixes returns one family's prefixes, masked and sorted, without contained ones.
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
		// Sorted by address, then length: a containing prefix comes first.
		if n := len(out); n > 0 && out[n-1].Bits() <= p.Bits() && out[n-1].Contains(p.Addr()) {
			continue
		}
		out = append(out, p)
	}
	return out
}

type family struct {
	// table family, and address keyword in rules
	table    string
	loopback string
}

var families = [model.NumFamilies]family{{table: "ip", loopback: "127.0.0.0/8"}, {table: "ip6", loopback: "::1"}}
