package render

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

const (
	// Fragment is the name of the fragment.
	Fragment = "policies"
	// Table is the name of its tables, one in each family.
	Table = "weft-policy"
	// DefaultRecheckFor is the kernel's default of nf_conntrack_tcp_timeout_established.
	DefaultRecheckFor = 5 * 24 * time.Hour
)

// Start says what happens to the pods of this node that are not known yet.
type Start uint8

// The values of Start.
const (
	// StartAllow lets them exchange packets with everyone.
	StartAllow Start = iota
	// StartDeny lets them open connections only to their node, and only their node to them:
	// an address of Node.PodCIDRs that is not the address of a pod is cut off.
	StartDeny
)

// Config describes the ruleset of the node.
type Config struct {
	// Families are those that this node has, IPv4 first.
	Families [2]bool
	// RecheckFor is for how long the established connections of an address are judged
	// again after less is allowed to it, unless LimitRecheck says that EndRecheck ends
	// that: at least as long as a connection may be idle. 0 means DefaultRecheckFor.
	RecheckFor time.Duration
	// Start says what happens to pods that are not known yet.
	Start Start
	// DropLog is how many dropped packets a second are logged for each set of policies and
	// direction. 0 means none.
	DropLog int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (c *Config) validate() error {
	var errs []error
	if c.Families == ([2]bool{}) {
		errs = append(errs, errors.New("no IP family is available on this node"))
	}
	if c.RecheckFor < 0 {
		errs = append(errs, fmt.Errorf("the time to recheck connections, %s, is negative", c.RecheckFor))
	}
	if c.Start > StartDeny {
		errs = append(errs, fmt.Errorf("start %d is not known", c.Start))
	}
	if c.DropLog < 0 {
		errs = append(errs, fmt.Errorf("the rate of the drop log, %d, is negative", c.DropLog))
	}
	c.RecheckFor = cmp.Or(c.RecheckFor, DefaultRecheckFor)
	if c.Now == nil {
		c.Now = time.Now
	}
	return errors.Join(errs...)
}

// family is an IP family with its words in nft.
type family struct {
	// table is the family of the table, and the keyword of its addresses in rules.
	table string
	// address is the type of its addresses.
	address string
	// source and destination match the ends of a connection, whichever direction a packet
	// has: who opened it, and where it leads after destination NAT.
	source, destination string
	// bits is the length of an address.
	bits int
	// all is the unspecified address.
	all netip.Addr
}

// families are IPv4 and IPv6.
var families = [2]family{
	{table: "ip", address: "ipv4_addr", source: "ct original ip saddr", destination: "ct reply ip saddr", bits: 32, all: netip.IPv4Unspecified()},
	{table: "ip6", address: "ipv6_addr", source: "ct original ip6 saddr", destination: "ct reply ip6 saddr", bits: 128, all: netip.IPv6Unspecified()},
}
