package nft

import (
	"fmt"
	"time"
)

// Family is the kernel's NFPROTO_* number (linux/netfilter.h).
type Family uint8

// The families in which tables exist.
const (
	FamilyInet   Family = 1
	FamilyIP     Family = 2
	FamilyARP    Family = 3
	FamilyNetdev Family = 5
	FamilyBridge Family = 7
	FamilyIP6    Family = 10
)

var families = [...]struct {
	family  Family
	keyword string
}{
	{FamilyIP, "ip"}, {FamilyIP6, "ip6"}, {FamilyInet, "inet"}, {FamilyARP, "arp"}, {FamilyBridge, "bridge"}, {FamilyNetdev, "netdev"},
}

// String returns the keyword, or family(N).
func (f Family) String() string {
	for i := range families {
		if families[i].family == f {
			return families[i].keyword
		}
	}
	return fmt.Sprintf("family(%d)", uint8(f))
}

// ParseFamily parses an nft keyword; an empty string means ip, as in nft(8).
func ParseFamily(s string) (Family, error) {
	for i := range families {
		if families[i].keyword == s || s == "" {
			return families[i].family, nil
		}
	}
	return 0, fmt.Errorf("unknown family %q: want ip, ip6, inet, arp, bridge or netdev", s)
}

// TableID names a table, unique per family in a network namespace.
type TableID struct {
	Family Family
	Name   string
}

// String returns nft(8)'s form, such as "ip weft".
func (t TableID) String() string { return t.Family.String() + " " + t.Name }

// Table is a table with its contents.
type Table struct {
	Family  Family
	Name    string
	Comment string
	// only "dormant"
	Flags      []string
	Objects    []Object
	Flowtables []Flowtable
	Chains     []Chain
	Sets       []Set
	Maps       []Map
}

// ID returns family and name.
func (t *Table) ID() TableID { return TableID{Family: t.Family, Name: t.Name} }

// Chain is a chain and its rules. Only a base chain has Type, Hook and Priority.
type Chain struct {
	Name string
	// filter, nat or route
	Type string
	// prerouting, input, forward, output, postrouting, ingress, egress
	Hook string
	// number or name, as in "dstnat - 10"
	Priority string
	// accept or drop
	Policy string
	// Device is for ingress or egress, as is Devices; at most one is set.
	Device  string
	Devices []string
	// only "offload"
	Flags   []string
	Comment string
	Rules   []Rule
}

// Base reports whether this is a base chain.
func (c *Chain) Base() bool { return c.Type != "" || c.Hook != "" || c.Priority != "" }

// Rule is a rule as in nft(8), without "add rule TABLE CHAIN".
type Rule struct {
	Text    string
	Comment string
}

// Set is a named set with either Type ("ipv4_addr . inet_service") or TypeOf ("ip saddr . tcp
// dport").
type Set struct {
	Name   string
	Type   string
	TypeOf string
	// constant, interval, timeout, dynamic
	Flags []string
	// Timeout is the default of the elements, 0 for none. GCInterval is the interval for the removal
	// of expired elements, 0 for the kernel's default. The smallest values are 1ms.
	Timeout    time.Duration
	GCInterval time.Duration
	// Size is the greatest number of elements; 0 means no limit, or 65535 if rules add elements
	// (nft_dynset_init).
	Size uint32
	// performance or memory
	Policy string
	// AutoMerge joins intervals that overlap or touch.
	AutoMerge bool
	// of every new element, such as "limit rate 10/second"
	Stateful []string
	Comment  string
	Elements []Element
}

// Map is a named map: a Set with a Type or TypeOf that ends in ": DATA".
type Map Set

// Element is a member of a set or map.
type Element struct {
	// "10.0.0.1 . tcp . 80", "10.0.0.0/8", "1024-2048"
	Key string
	// "10.1.0.1 . 8080", "goto pick-3"
	Value string
	// 0 means the timeout of the set
	Timeout time.Duration
	// remaining time; 0 means the whole timeout
	Expires time.Duration
	// such as "counter packets 3 bytes 180"
	Stateful []string
	// at most 128 bytes (NFTNL_UDATA_COMMENT_MAXLEN)
	Comment string
}
