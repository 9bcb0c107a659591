package render

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

const (
	Fragment = "policies"
	// Table is the name of the tables.
	Table = "weft-policy"
	// DefaultRecheckFor is the kernel's default of nf_conntrack_tcp_timeout_established.
	DefaultRecheckFor = 5 * 24 * time.Hour
)

// Start says what happens to unknown pods of this node.
type Start uint8

const (
	// StartAllow allows all packets.
	StartAllow Start = iota
	// StartDeny allows only connections between these pods and their node. It cuts off every
	// address of Node.PodCIDRs without a known pod.
	StartDeny
)

// Config describes the ruleset of the node.
type Config struct {
	// Families are IPv4, IPv6.
	Families [2]bool
	// RecheckFor limits a recheck without EndRecheck: see LimitRecheck. It must be at least the
	// idle time of connections. 0 means DefaultRecheckFor.
	RecheckFor time.Duration
	Start      Start
	// DropLog is the number of logged drops per second for each set of policies and direction; 0
	// disables the log.
	DropLog int
	// Now may be nil.
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

type family struct {
	// The keyword of addresses in rules.
	table   string
	address string // type of addresses
	// The opener of a connection, and its other end after destination NAT, in both directions.
	opener, responder string
	bits              int
	all               netip.Addr // unspecified address
}

var families = [2]family{
	{table: "ip", address: "ipv4_addr", opener: "ct original ip saddr", responder: "ct reply ip saddr", bits: 32, all: netip.IPv4Unspecified()},
	{table: "ip6", address: "ipv6_addr", opener: "ct original ip6 saddr", responder: "ct reply ip6 saddr", bits: 128, all: netip.IPv6Unspecified()},
}
