package set_test

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

// newReader returns a namespace and a Reader of it.
func newReader(t *testing.T) (*nfttest.NS, *kernel.Reader) {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	r := nfttest.Must(kernel.OpenReader(kernel.Config{NetNS: ns.FD()}))
	t.Cleanup(func() { nfttest.NoError(t, r.Close()) })
	return ns, r
}

// declare has nft declare a set with its elements in table t, and returns how the kernel describes it. The table is
// deleted at the end of the test.
func declare(t *testing.T, ns *nfttest.NS, r *kernel.Reader, family nft.Family, decl nft.Set) *set.Set {
	t.Helper()
	decl.Name = "s"
	table := nft.Table{Family: family, Name: "t", Chains: []nft.Chain{{Name: "c1"}}}
	if strings.Contains(decl.Type+decl.TypeOf, ":") {
		table.Maps = []nft.Map{nft.Map(decl)}
	} else {
		table.Sets = []nft.Set{decl}
	}
	ns.Nft(t, ruleset.Format([]nft.Table{table}))
	t.Cleanup(func() { ns.Nft(t, "delete table "+family.String()+" t") })
	programs := nfttest.Must(r.Programs())
	if len(programs) != 1 || len(programs[0].Sets) != 1 || programs[0].Sets[0].Err != nil {
		t.Fatalf("the kernel has %+v, want one set", programs)
	}
	return programs[0].Sets[0].Decl
}

// TestDeclarationsAsNft compares the kernel's view of sets that nft declares with what Compile makes of
// the same declaration: datatypes, all selectors, and all fields of headers and extensions.
func TestDeclarationsAsNft(t *testing.T) {
	ns, r := newReader(t)
	sets := []nft.Set{
		{Type: "ipv6_addr", Flags: []string{"interval"}},
		{Type: "inet_service", Flags: []string{"interval"}, AutoMerge: true, Comment: "ports"},
		{Type: "mark", Flags: []string{"interval"}},
		{Type: "ipv4_addr", Timeout: 5 * time.Second},
		{Type: "ipv4_addr", Flags: []string{"timeout"}, GCInterval: 3 * time.Second},
		{Type: "ipv4_addr", Flags: []string{"dynamic", "timeout"}, Size: 65535, Timeout: 90 * time.Minute},
		{Type: "ipv4_addr", Policy: "memory", Size: 17},
		{Type: "ipv4_addr", Comment: strings.Repeat("x", userdata.MaxComment)},
		{Type: "ipv4_addr . inet_proto . inet_service", Flags: []string{"interval"}, Comment: "c"},
		{Type: "ifname . ipv6_addr . ether_addr . mark . dscp", Flags: []string{"interval"}},
		{Type: "ipv4_addr : verdict", Comment: "verdicts", Flags: []string{"interval"}},
		{Type: "ipv4_addr . inet_service : ipv4_addr . inet_service", Comment: "both"},
		{Type: "inet_service : mark"},
		{Type: "ipv4_addr : interval ipv4_addr"},
		{Type: "ipv4_addr : interval ipv4_addr . inet_service", Flags: []string{"interval"}},
		{TypeOf: "ip6 saddr", Flags: []string{"interval"}, AutoMerge: true, Comment: "x"},
		{TypeOf: "ip daddr . meta l4proto . th dport : verdict"},
		{TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
		{TypeOf: "ip daddr . meta l4proto . th dport . numgen inc mod 7 offset 2 : verdict", Comment: "sticky"},
		{TypeOf: "ip saddr . ip daddr . meta l4proto . th dport : ip daddr . th dport", Flags: []string{"dynamic", "timeout"}, Size: 65536},
		{TypeOf: "meta l4proto"},
		{TypeOf: "iifname", Flags: []string{"interval"}},
		{TypeOf: "meta iifname . meta oifname"},
		{TypeOf: "meta mark : meta mark"},
		{TypeOf: "ct state"},
		{TypeOf: "ct status"},
		{TypeOf: "ct mark", Flags: []string{"interval"}},
		{TypeOf: "ct original ip saddr . ct reply ip daddr"},
		{TypeOf: "ct original ip6 daddr"},
		{TypeOf: "fib daddr type"},
		{TypeOf: "ip saddr . fib daddr . iif type"},
		{TypeOf: "fib saddr . iif oif"},
		{TypeOf: "ip length . ip id"},
		{TypeOf: "ip daddr : interval ip daddr"},
		{TypeOf: "ip daddr . tcp dport : tcp dport", Flags: []string{"interval"}},
	}
	for id := range uint32(64) {
		typ, ok := datatype.ByID(id)
		if !ok || typ.Bits == 0 {
			continue
		}
		if declared, _ := datatype.Lookup(typ.Name); declared == typ {
			sets = append(sets, nft.Set{Type: typ.Name})
		}
	}
	declared := map[nft.Family][]nft.Set{nft.FamilyIP: sets}
	typeOf := func(family nft.Family, flags []string, list ...string) {
		for _, text := range list {
			declared[family] = append(declared[family], nft.Set{TypeOf: text, Flags: flags})
		}
	}
	typeOf(nft.FamilyInet, nil,
		"rt classid", "rt ip6 nexthop", "rt mtu", "rt ipsec", "socket transparent", "socket wildcard . meta mark",
		"socket cgroupv2 level 2", "osf name", "osf ttl skip version : verdict", "ipsec in reqid",
		"ipsec in ip saddr . ipsec out ip6 daddr", "symhash mod 4 offset 2 : meta mark", "meta length . meta priority", "meta nftrace",
		"meta rtclassid . meta cgroup . meta cpu", "meta ibrname . meta obrname", "meta ibrpvid . meta ibrvproto",
		"meta iifkind . meta oiftype . meta iifgroup", "meta sdif . meta sdifname", "meta secpath", "meta random . meta secmark",
		"meta skuid . meta skgid : meta priority", "ct helper", "ct original bytes . ct reply packets", "ct zone . ct id : ct zone",
		"ct event", "ct expiration . ct secmark", "meta mark : ct zone",
		"@nh,0,8", "@nh,8,16", "@ll,0,48", "@th,0,16", "@th,16,16", "@th,8,32", "@ih,0,128", "@nh,4,4", "@nh,3,7",
		"@nh,96,32 . tcp dport", "tcp dport . @th,8,8 . ip dscp", "ip6 flowlabel . ip6 dscp",
		"frag id . tcp option maxseg size", "ip option rr ptr : sctp chunk data ppid", "mh type : verdict",
	)
	typeOf(nft.FamilyInet, []string{"interval"},
		"rt ip nexthop", "socket mark", "ipsec out spnum 2 spi", "meta time", "meta day . meta hour", "ct avgpkt",
	)
	typeOf(nft.FamilyInet, nil, set.ExtensionFields()...)
	typeOf(nft.FamilyBridge, nil, "ether saddr . vlan id . ip saddr", "vlan pcp . vlan dei")
	for _, h := range selector.Headers {
		family := nft.FamilyInet
		switch h.Name {
		case "ether", "vlan":
			family = nft.FamilyBridge
		case "arp":
			family = nft.FamilyARP
		}
		for _, f := range h.Fields {
			typeOf(family, nil, h.Name+" "+f.Name)
		}
	}
	for family, sets := range declared {
		for _, decl := range sets {
			t.Run(decl.Type+decl.TypeOf, func(t *testing.T) {
				want := nfttest.Must(set.CompileEither(family, decl))
				if got := declare(t, ns, r, family, decl); !reflect.DeepEqual(got, want) || !got.Equal(want) {
					t.Errorf("nft declares %+v, weft %+v", *got, *want)
				}
			})
		}
	}
}

// TestElementsAsNft compares the elements that nft puts into the kernel with
// what Pack makes of the same text.
func TestElementsAsNft(t *testing.T) {
	ns, r := newReader(t)
	interval := []string{"interval"}
	keys := func(keys ...string) []nft.Element {
		var out []nft.Element
		for _, k := range keys {
			k, v, _ := strings.Cut(k, " : ")
			out = append(out, nft.Element{Key: k, Value: v})
		}
		return out
	}
	sets := []nft.Set{
		{Type: "ipv4_addr", Flags: interval, Elements: keys("10.0.0.0/8", "11.0.0.5-11.0.0.9", "12.1.2.3", "13.0.0.7/24")},
		{Type: "ipv4_addr", Flags: interval, Elements: keys("0.0.0.0/1", "255.0.0.0/8")},
		{Type: "ipv6_addr", Flags: interval, Elements: keys("fe80::/10", "::1", "2001:db8::1-2001:db8::9")},
		{Type: "inet_service", Flags: interval, Elements: keys("22", "1024-2048", "http", "60000-65535")},
		{Type: "mark", Flags: interval, Elements: keys("1-5", "0xff", "0x100-0x1ff", "0x300-0x3fe")},
		{Type: "inet_proto", Elements: keys("tcp", "udp", "icmpv6", "200")},
		{Type: "ct_state", Elements: keys("new", "established")},
		{Type: "ct_status", Elements: keys("dnat", "seen-reply")},
		{Type: "icmp_type", Flags: interval, Elements: keys("echo-request", "0-3")},
		{Type: "icmpv6_type", Elements: keys("nd-neighbor-solicit", "mld-listener-done")},
		{Type: "ether_addr", Elements: keys("00:11:22:33:44:55", "1:2:3:4:5:6")},
		{Type: "ether_type", Elements: keys("ip", "ip6", "arp", "0x88a8")},
		{Type: "ifname", Elements: keys("eth0", "\"lo\"", "a.b-c_d")},
		{Type: "ifname", Flags: interval, Elements: keys("\"eth*\"", "\"lo\"")},
		{Type: "ifname . mark", Flags: interval, Elements: keys("\"eth*\" . 1-5", "\"lo\" . 0x10", "\"lo\" . 0x20-0x2f")},
		{Type: "dscp", Elements: keys("cs1", "ef", "7")},
		{Type: "time", Elements: keys("5s", "1h30m", "90", "1d2h")},
		{Type: "fib_addrtype", Elements: keys("local", "unicast")},
		{Type: "boolean", Elements: keys("exists", "missing")},
		{Type: "classid", Elements: keys("1:2", "root", "ab:cd")},
		{Type: "uid", Elements: keys("0", "1000")},
		{Type: "pkt_type", Elements: keys("host", "broadcast", "multicast")},
		{Type: "tcp_flag", Elements: keys("syn", "fin | ack")},
		{Type: "nf_proto", Elements: keys("ipv4", "ipv6")},
		{Type: "ipv4_addr . inet_service", Flags: interval, Elements: keys("10.0.0.0/8 . 80", "11.0.0.1-11.0.0.7 . 1-5", "12.0.0.1 . http")},
		{Type: "ipv4_addr . ipv6_addr . ether_addr . inet_proto . mark", Elements: keys("1.2.3.4 . ::1 . 00:11:22:33:44:55 . tcp . 0x7")},
		{Type: "mark : inet_service", Flags: interval, Elements: keys("1-5 : 80", "7 : 443")},
		{Type: "ipv4_addr : verdict", Elements: keys("1.1.1.1 : accept", "1.1.1.2 : drop", "1.1.1.3 : jump c1", "1.1.1.4 : goto c1", "1.1.1.5 : return", "1.1.1.6 : continue")},
		{Type: "ipv4_addr : verdict", Flags: interval, Elements: keys("1.0.0.0/8 : accept", "2.0.0.0-2.0.0.8 : goto c1")},
		{Type: "ipv4_addr : interval ipv4_addr", Elements: keys("1.1.1.1 : 10.0.0.1-10.0.0.5")},
		{Type: "ipv4_addr : interval ipv4_addr . inet_service", Elements: keys("1.1.1.1 : 10.0.0.1-10.0.0.5 . 80-90")},
		{TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport", Elements: keys("10.96.0.1 . tcp . 80 . 3 : 10.1.0.1 . 8080")},
		{TypeOf: "numgen inc mod 9 : ip daddr", Elements: keys("5 : 10.0.0.7")},
		{TypeOf: "tcp option maxseg size . tcp option mptcp subtype", Flags: interval, Elements: keys("500-1400 . 1-3", "1460 . 15")},
		{TypeOf: "srh tag : tcp option timestamp tsval", Elements: keys("7 : 0xffffffff")},
		{TypeOf: "sctp chunk data ppid : verdict", Flags: interval, Elements: keys("18-46 : drop", "60 : accept")},
		{TypeOf: "mh type . rt0 addr[1]", Elements: keys("binding-update . fd00::1")},
		{TypeOf: "meta hour", Flags: interval, Elements: keys("\"08:00\"-\"17:30\"", "\"20:00\"")},
		{TypeOf: "meta day", Elements: keys("\"Monday\"", "\"Saturday\"")},
		{TypeOf: "meta time", Flags: interval, Elements: keys("\"2024-01-01 00:00:00\"-\"2024-06-30 12:00:00\"")},
		{TypeOf: "meta priority", Elements: keys("1:10", "none", "ffff:1")},
		{TypeOf: "meta mark . meta priority", Flags: interval, Elements: keys("1-5 . 1:0-1:f")},
		{TypeOf: "rt mtu", Flags: interval, Elements: keys("1000-1460", "9000")},
		{TypeOf: "rt ip nexthop", Flags: interval, Elements: keys("192.0.2.0/25", "198.51.100.1-198.51.100.9")},
		{TypeOf: "ct bytes", Flags: interval, Elements: keys("1000-5000000000", "18446744073709551615")},
		{TypeOf: "ct zone : verdict", Elements: keys("1 : accept", "65535 : drop")},
		{TypeOf: "ct id", Elements: keys("1", "305419896")},
		{TypeOf: "ct expiration", Elements: keys("5s", "1h30m")},
		{TypeOf: "ipsec in spi", Flags: interval, Elements: keys("1-255", "4096")},
		{TypeOf: "ipsec in reqid . ipsec in spi", Flags: interval, Elements: keys("1-5 . 7", "9 . 1-2")},
		{TypeOf: "socket mark . socket transparent", Elements: keys("0x00000001 . 1")},
		{TypeOf: "meta sdifname . meta pkttype", Elements: keys("\"vrf0\" . host")},
		{TypeOf: "ip saddr . fib daddr type . ct mark", Elements: keys("1.2.3.4 . local . 5")},
		{Type: "ipv4_addr", Flags: []string{"timeout"}, Elements: []nft.Element{
			{Key: "1.1.1.1", Timeout: time.Hour, Comment: "an hour"}, {Key: "1.1.1.2", Comment: strings.Repeat("y", userdata.MaxComment)},
		}},
		{Type: "ipv4_addr", Flags: interval, Elements: []nft.Element{
			{Key: "1.0.0.0/8", Comment: "one"}, {Key: "240.0.0.0/4", Comment: "to the end"},
		}},
	}
	for _, decl := range sets {
		t.Run(decl.Type+decl.TypeOf, func(t *testing.T) {
			ours := nfttest.Must(set.CompileEither(nft.FamilyIP, decl))
			dumped := declare(t, ns, r, nft.FamilyIP, decl)
			listed := ns.Run(t, "nft", "list", "table", "ip", "t")
			var want []set.Element
			for _, e := range decl.Elements {
				p := nfttest.Must(ours.Pack(e))
				want = append(want, p)
				key, data := ours.FormatKey(p), ours.FormatData(p)
				again, err := ours.Pack(nft.Element{Key: key, Value: data, Timeout: p.Timeout, Comment: p.Comment})
				if err != nil || again != p {
					t.Errorf("%s : %s packs to %q, from %q (%v)", key, data, again, p, err)
				}
				if got, err := dumped.Pack(e); err != nil || got != p {
					t.Errorf("%s packs to %q (%v) by a dumped declaration, want %q", e.Key, got, err, p)
				}
				if got, err := ours.PackKey(e.Key); err != nil || got.Key != p.Key || got.KeyEnd != p.KeyEnd {
					t.Errorf("PackKey gives %q (%v), Pack %q", got, err, p)
				}
				if !strings.Contains(listed, key) || data != "" && !strings.Contains(listed, " : "+data) {
					t.Errorf("nft does not print %s : %s:\n%s", key, data, listed)
				}
			}
			got := nfttest.Must(r.Elements(nft.TableID{Family: nft.FamilyIP, Name: "t"}, dumped))
			for i := range got {
				if got[i].Timeout > 0 {
					got[i].State = "" // the time that is left
				}
			}
			for _, list := range [][]set.Element{got, want} {
				slices.SortFunc(list, func(a, b set.Element) int { return cmp.Compare(a.Key, b.Key) })
			}
			if diff := gocmp.Diff(got, want); diff != "" {
				t.Errorf("elements differ (-nft +weft):\n%s", diff)
			}
		})
	}
}
