package datatype

import (
	"slices"
	"strings"
)

// sorted; nft(8) 1.0.6 rejects them as unquoted names
var keywords = strings.Fields(`
	accept add ah all auto-merge bridge cgroup chain comment comp constant continue counter cpu create ct day dccp
	define delete describe device devices drop dst dup dynamic element elements esp exists expires export exthdr
	fib flags flow flowtable flush frag fwd gc-interval get goto handle hbh hook hour ibriport ibrname icmp icmpv6
	igmp iif iifgroup iifname iiftype import include index inet insert interval ipsec jhash jump limit list log
	map mark masquerade meta meter mh missing monitor netdev nftrace notrack numgen obriport obrname offload oif
	oifgroup oifname oiftype osf pkttype policy position priority queue quota random redefine redirect reject
	rename replace return rt rt0 rt2 rtclassid rule ruleset sctp secmark set size skgid skuid socket srh symhash
	synproxy table tcp th time timeout tproxy type typeof udp udplite undefine update vmap xt
`)

// also rejected as a log prefix or comment
var textKeywords = strings.Fields("arp dnat ecn ether ip ip6 reset snat vlan")

// IsKeyword reports whether nft(8) reads a word as the next part of the rule. text is true for log
// prefixes and comments.
func IsKeyword(word string, text bool) bool {
	_, found := slices.BinarySearch(keywords, word)
	return found || text && slices.Contains(textKeywords, word)
}
