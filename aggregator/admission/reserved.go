package admission

import (
	"fmt"
	"slices"
	"strings"
)

// restricted reports whether the update must not make names that nft cannot read again.
func (s *sender) restricted() bool {
	p := s.cfg.Access.Publisher(s.key.Publisher)
	return p != nil && !p.Admin && !s.cfg.Stored
}

func (s *sender) checkName(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, reserved := slices.BinarySearch(reservedNames, name); reserved && s.restricted() {
		return fmt.Errorf("name %q is a word of nft's language: nft could not read its own listing: use another name", name)
	}
	return nil
}

// reservedNames are the words that the scanner of nft 1.0.6 rejects somewhere a listing has names,
// sorted. nft has no quotes for names.
var reservedNames = strings.Fields(`
. accept add ah all and arp auto-merge avgpkt bridge burst bytes cgroup chain comment comp constant continue
count counter counters cpu create ct daddr day dccp define delete describe device devices direction dnat
dport drop dst dup dynamic ecn element elements eq esp ether event exists expectation expiration expires
export exthdr fib flags flow flowtable flush frag fwd gc-interval ge get goto gt handle hbh helper helpers
hook hour ibriport ibrname icmp icmpv6 id igmp iif iifgroup iifname iiftype import include index inet insert
interval ip ip6 ipsec jhash jump l3proto label le limit list ll log lshift lt map mark masquerade meta meter
mh minute missing monitor name ne netdev nftrace nh not notrack numgen obriport obrname offload oif oifgroup
oifname oiftype or original osf over packets pkttype policy position priority proto-dst proto-src protocol
queue quota random rate redefine redirect reject rename replace reply reset return rshift rt rt0 rt2
rtclassid rule ruleset saddr sctp secmark second set size skgid skuid snat socket srh state status symhash
synproxy table tcp th time timeout tproxy type typeof udp udplite undefine until update used vlan vmap week
xor xt zone
`)
