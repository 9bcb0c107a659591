package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// named is a ruleset in which every name is %s, in the places that a listing has it. What
// precedes a name matters: it decides which words the scanner knows.
const named = `table inet %[1]s {
	counter %[1]s { packets 0 bytes 0 }
	quota %[1]s { over 1 mbytes }
	limit %[1]s { rate 1/second }
	ct helper %[1]s { type "ftp" protocol tcp; l3proto ip; }
	chain %[1]s { }
	chain base { type filter hook input priority 0; policy accept; ct state new jump %[1]s; }
	set %[1]s { type inet_service; flags dynamic; size 16; elements = { 80 }; }
	map targets { type inet_service : verdict; elements = { 80 : goto %[1]s, 81 : jump %[1]s } }
	map counters { type inet_service : counter; elements = { 80 : "%[1]s" } }
	chain c {
		tcp dport @%[1]s add @%[1]s { tcp dport } jump %[1]s
		udp sport @%[1]s counter packets 0 bytes 0 goto %[1]s
		th dport @%[1]s limit rate 1/second burst 5 packets jump %[1]s
		sctp dport @%[1]s log prefix "x" group 1 jump %[1]s
		dccp sport @%[1]s log flags ip options jump %[1]s
		udplite sport @%[1]s quota over 1 mbytes jump %[1]s
		ip length 100 meta mark set 1 jump %[1]s
		ip6 length 100 ct mark set 1 jump %[1]s
		meta nfproto ipv4 meta mark 1 jump %[1]s
		ct mark 1 ct direction original jump %[1]s
		fib daddr type local jump %[1]s
		iifname "x" icmp type echo-request jump %[1]s
		rt mtu 100 socket transparent 1 jump %[1]s
		tcp option maxseg size 100 jump %[1]s
		tcp dport vmap { 1 : jump %[1]s, 2 : goto %[1]s }
		counter name "%[1]s" quota name "%[1]s" limit name "%[1]s" ct helper set "%[1]s"
	}
}
table ip x {
	map %[1]s { type ipv4_addr : verdict; }
	set s { type ipv4_addr; }
	chain c { ip saddr vmap @%[1]s ; }
}
`

// candidates are all words of the scanner of nft 1.0.6, and ".".
var candidates = strings.Fields(`
. a-rwnd abort accept ackseq add addr ah all and arp asconf asconf-ack auto-merge avgpkt bridge burst bypass
bytes cfi cgroup cgroupv2 chain chains checksum chunk classid code comment comp constant continue cookie-ack
cookie-echo count counter counters cpi cpu create csumcov ct cum-tsn-ack cwr daddr data day dccp define dei
delete describe device devices direction dnat doff dport drop dscp dst dup dynamic echo ecn ecne element
elements eol eq error esp ether event exists expectation expiration expires export exthdr fanout fastopen fib
flags flow flowlabel flowtable flowtables flush forward-tsn frag frag-off fully-random fwd gateway
gc-interval ge get goto group gt handle hbh hdrlength heartbeat heartbeat-ack helper helpers hlen hook hooks
hoplimit hour htype ibriport ibrname icmp icmpv6 icmpx id igmp iif iifgroup iifname iiftype import in inc
include index inet init init-ack init-tag initial-tsn insert interval ip ip6 ipsec jhash json jump l3proto
label last-entry le left length level limit limits list ll log lowest-tsn lshift lsrr lt map maps mark
masquerade max-delay maxseg md5sig memory meta meter meters mh minute missing mod monitor more-fragments
mptcp mrt mss mtu name ne netdev new-cum-tsn nexthdr nexthop nftrace nh noop nop not notrack num num-dup-tsns
num-gap-ack-blocks num-inbound-streams num-outbound-streams numgen obriport obrname offload offset oif
oifgroup oifname oiftype operation option options or original osf out over packets param-problem pcp
performance persistent pkttype plen policy port position ppid prefix priority proto-dst proto-src protocol
ptr ptype queue queue-threshold quota quotas ra random rate redefine redirect reject rename replace reply
reqid reserved reserved2 reset return right rr rshift rt rt0 rt2 rtclassid rule rules ruleset sack sack-perm
sack-permitted sack0 sack1 sack2 sack3 saddr sctp secmark secmarks second seed seg-left seqno sequence set
sets shutdown shutdown-ack shutdown-complete sid size skgid skuid snaplen snat socket spi spnum sport srh ssn
ssrr state status stream subtype symhash synproxy synproxys table tables tag tcp th time timeout timestamp to
tproxy trace transparent tsecr tsn tsval ttl type typeof udp udplite undefine until update urgptr used value
version vlan vm vmap vtag week wildcard window with wscale xml xor xt zone
`)

// TestReservedNames compares the list with nft: what is in it does not load as the name
// of something, and what nft has as a word but is not in it does.
func TestReservedNames(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	if !slices.IsSorted(reservedNames) {
		t.Error("the list is not in order")
	}
	ns := nfttest.New(t)
	load := func(format, name string) error {
		out, err := ns.Output(fmt.Sprintf(format, name)+"\n", "nft", "-c", "-f", "-")
		if err != nil {
			return fmt.Errorf("%w: %.200s", err, out)
		}
		return nil
	}
	must(t, load(named, "harmless"))
	var unreadable []string
	for _, name := range candidates {
		if load(named, name) != nil {
			unreadable = append(unreadable, name)
		}
	}
	if !slices.Equal(unreadable, reservedNames) {
		t.Errorf("nft refuses these names:\n%s", strings.Join(unreadable, " "))
	}
	for _, name := range reservedNames {
		if !slices.Contains(candidates, name) {
			t.Errorf("%s is not a word of nft", name)
		}
	}
}
