package services

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestHooks pins where packets meet the rules: others go by it.
//
// Behaviour: 166.
func TestHooks(t *testing.T) {
	c := newCluster(t)
	c.start(t, append(cast(), withAffinity(newService(14, "2"), time.Hour)))
	var list struct {
		Nftables []struct {
			Table *struct{ Family, Name string }
			Chain *struct {
				Family, Table, Name, Type, Hook string
				Prio                            int
			}
		}
	}
	must(t, json.Unmarshal([]byte(c.node.Run(t, "nft", "-j", "list", "ruleset")), &list))
	var tables, hooks []string
	for _, o := range list.Nftables {
		if o.Table != nil {
			tables = append(tables, o.Table.Family+" "+o.Table.Name)
		}
		if ch := o.Chain; ch != nil && ch.Hook != "" && ch.Family == "ip" {
			hooks = append(hooks, fmt.Sprintf("%s %s %d", ch.Type, ch.Hook, ch.Prio))
		}
	}
	slices.Sort(hooks)
	if want := []string{"ip weft", "ip6 weft"}; !slices.Equal(tables, want) {
		t.Errorf("tables %v, want %v", tables, want)
	}
	want := []string{"filter forward 0", "filter input 0", "filter output -110", "filter output 0", "filter prerouting -110",
		"nat input 99", "nat output -100", "nat postrouting 100", "nat postrouting 99", "nat prerouting -100"}
	if !slices.Equal(hooks, want) {
		t.Errorf("hooks %q, want %q", hooks, want)
	}
}

// TestOthersSeeEndpoints: rules of others, in forward and before source NAT in
// postrouting, see the endpoint as destination and the client as source. No packet leaves with
// the bit that asks for masquerading, and the other bits of its mark stay as they were.
//
// Behaviour: 85, 93, 94, 167.
func TestOthersSeeEndpoints(t *testing.T) {
	c := newCluster(t)
	c.start(t, []*model.Service{newService(1, "2")})
	var rules []string
	for f, word := range []string{"ip", "ip6"} {
		rules = append(rules, fmt.Sprintf("%s saddr %s %s daddr %s tcp dport 8080 ct state new counter", word, extAddr[f], word, podAddr(model.Family(f), 2)),
			fmt.Sprintf("%s saddr %s meta l4proto tcp counter", word, podAddr(model.Family(f), 2).Prev()))
	}
	c.node.Nft(t, "table inet others {\n"+
		"chain forward { type filter hook forward priority filter - 5;\n"+strings.Join(rules, "\n")+"\n}\n"+
		"chain before { type filter hook postrouting priority srcnat - 5;\n"+strings.Join(rules, "\n")+"\n}\n"+
		"chain after { type filter hook postrouting priority srcnat + 5;\n"+strings.Join(rules, "\n")+"\n}\n}")
	c.node.Nft(t, `table inet marks {
		chain early { type filter hook prerouting priority -150; ct state new meta mark set 0x00a0; }
		chain asked { type filter hook forward priority filter; meta mark & 0x4000 == 0x4000 counter; }
		chain late { type filter hook postrouting priority 300;
			meta mark & 0x4000 == 0x4000 counter
			meta mark 0x00a0 counter
		}
	}`)
	for _, f := range []model.Family{model.IPv4, model.IPv6} {
		for _, to := range []string{"cluster 1", "lb 1", "nodeport 1"} {
			c.send(t, flow{"ext", to, "pod2 masq"}, f, "tcp")
		}
	}
	counted := regexp.MustCompile(`counter packets (\d+)`)
	marks := c.node.Run(t, "nft", "list", "table", "inet", "marks")
	counts := counted.FindAllStringSubmatch(marks, -1)
	if len(counts) != 3 || counts[0][1] == "0" || counts[1][1] != "0" || counts[2][1] == "0" {
		t.Errorf("want packets with the bit in forward, none in postrouting, and some with the other bits:\n%s", marks)
	}
	list := c.node.Run(t, "nft", "list", "table", "inet", "others")
	counts = counted.FindAllStringSubmatch(list, -1)
	if len(counts) != 12 {
		t.Fatalf("%d counters:\n%s", len(counts), list)
	}
	for i, m := range counts {
		// In each chain and family: the client, then the node. After source NAT it is the other.
		client, after := i%2 == 0, i >= 8
		if seen := m[1] != "0"; seen != (client != after) {
			t.Errorf("counter %d: %s packets\n%s", i, m[1], list)
		}
	}
}

// sctpInit is an SCTP packet with an INIT chunk.
func sctpInit(from, to uint16) []byte {
	b := make([]byte, 32)
	binary.BigEndian.PutUint16(b[0:], from)
	binary.BigEndian.PutUint16(b[2:], to)
	b[12] = 1 // INIT
	binary.BigEndian.PutUint16(b[14:], 20)
	binary.BigEndian.PutUint32(b[16:], 0x12345678)
	binary.BigEndian.PutUint32(b[20:], 65536)
	binary.BigEndian.PutUint16(b[24:], 1)
	binary.BigEndian.PutUint16(b[26:], 1)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// sctpService is newService with SCTP in place of the others.
func sctpService(i int, pods ...string) *model.Service {
	s := newService(i, pods...)
	s.Ports = s.Ports[:1]
	s.Ports[0].Name, s.Ports[0].Protocol = "sctp", model.SCTP
	return s
}

// TestSCTP: packets to every kind of address reach the endpoint, at its port.
//
// Behaviour: 95.
func TestSCTP(t *testing.T) {
	c := newCluster(t)
	c.start(t, []*model.Service{sctpService(1, "2*"), withPolicies(sctpService(4, "2*"), false, true), withAffinity(sctpService(6, "2*"), time.Hour)})
	for f := range model.NumFamilies {
		for _, i := range []int{1, 4, 6} {
			for n, kind := range []string{"cluster", "external", "lb", "nodeport"} {
				to := netip.MustParseAddrPort(place(f, fmt.Sprintf("%s %d", kind, i)))
				from := uint16(20000 + 100*i + n)
				if err := arrives(c.ext, c.pods[2], f, to, from); err != nil {
					t.Errorf("%s %s: %v", kind, to, err)
				}
			}
		}
	}
}

// arrives sends an SCTP packet and waits for it at a pod's port 8080.
func arrives(client, pod *nfttest.NS, f model.Family, to netip.AddrPort, from uint16) error {
	network := []string{"ip4:132", "ip6:132"}[f]
	var in net.PacketConn
	if err := pod.Do(func() (err error) { in, err = net.ListenPacket(network, podAddr(f, 2).String()); return err }); err != nil {
		return err
	}
	defer in.Close()
	if err := client.Do(func() error {
		out, err := net.Dial(network, to.Addr().String())
		if err != nil {
			return err
		}
		defer out.Close()
		_, err = out.Write(sctpInit(from, to.Port()))
		return err
	}); err != nil {
		return err
	}
	_ = in.SetReadDeadline(time.Now().Add(2 * time.Second))
	for b := make([]byte, 128); ; {
		n, _, err := in.ReadFrom(b)
		if err != nil {
			return err
		}
		if n < 16 || b[12] != 1 {
			continue
		}
		if port := binary.BigEndian.Uint16(b[2:]); port != 8080 {
			return fmt.Errorf("the packet arrives at port %d", port)
		}
		return nil
	}
}

// TestLongNames: the longest names that Kubernetes allows, in every place where they
// appear, and flows to such Services.
//
// Behaviour: 168.
func TestLongNames(t *testing.T) {
	c := newCluster(t)
	long := func(i int, s *model.Service) *model.Service {
		s.Name = model.Key{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("s", 62) + fmt.Sprint(i)}
		for j := range s.Ports {
			s.Ports[j].Name = strings.Repeat("p", 14) + fmt.Sprint(j)
		}
		return s
	}
	_, p := c.start(t, []*model.Service{
		long(1, newService(1, "2*", "3")),
		long(4, withAffinity(withPolicies(newService(4, "2*", "3"), false, true), time.Hour)),
	})
	c.check(t, []flow{{"ext", "lb 1", "pod2 pod3 masq"}, {"ext", "lb 4", "pod2 kept"}, {"ext", "nodeport 4", "pod2 kept"}})
	u := p.put(t, long(1, newService(1, "2*")), long(4, newService(4, "3")))
	if u.Snapshot {
		t.Error("a change of Services is a snapshot")
	}
	p.sweep(t)
	c.check(t, []flow{{"ext", "lb 1", "pod2 masq"}, {"ext", "lb 4", "pod3 masq"}})
}

// TestManySourceRanges: a thousand ranges, some inside others, and their change.
//
// Behaviour: 42, 43, 48.
func TestManySourceRanges(t *testing.T) {
	c := newCluster(t)
	ranges := func(n int, extra ...string) *model.Service {
		s := newService(1, "2")
		for i := range n {
			s.SourceRanges[0] = append(s.SourceRanges[0], netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(i / 250), byte(i % 250), 0}), 24),
				netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(i / 250), byte(i % 250), byte(i % 100)}), 28+i%5))
		}
		s.SourceRanges[1] = []netip.Prefix{netip.MustParsePrefix("fd01::/16")}
		for _, text := range extra {
			p := netip.MustParsePrefix(text)
			s.SourceRanges[model.FamilyOf(p.Addr())] = append(s.SourceRanges[model.FamilyOf(p.Addr())], p)
		}
		return s
	}
	_, p := c.start(t, []*model.Service{ranges(1000)})
	blocked := []flow{{"ext", "lb 1", "dropped"}, {"pod1", "lb 1", "dropped"}, {"node", "lb 1", "dropped"}}
	open := []flow{{"ext", "lb 1", "pod2"}, {"pod1", "lb 1", "dropped"}}
	c.check(t, blocked)
	// Around one that is there, inside one, and without it again.
	u := p.put(t, ranges(1000, "192.0.2.0/24", "100.0.0.0/15", "2001:db8::/64"))
	if u.Added > 10 {
		t.Errorf("%d elements added for three ranges", u.Added)
	}
	c.check(t, open)
	p.put(t, ranges(1000, "192.0.2.0/25", "192.0.2.10/32", "2001:db8::10/128", "2001:db8::/127"))
	c.check(t, open)
	p.put(t, ranges(1000))
	c.check(t, blocked)
	none := newService(1, "2")
	p.put(t, none)
	c.check(t, []flow{{"ext", "lb 1", "pod2"}, {"pod1", "lb 1", "pod2"}})
	if list := c.node.Run(t, "nft", "list", "map", "ip", "weft", "source-ranges"); strings.Contains(list, "elements") {
		t.Errorf("ranges of no use stay:\n%.500s", list)
	}
}

// TestHooksOnDemand: the chains for source ranges are on their hooks while a Service has
// any, and a source that is not allowed never gets through while they come and go; the one on
// input is there while a Service has no endpoints.
//
// Behaviour: 166.
func TestHooksOnDemand(t *testing.T) {
	c := newCluster(t)
	_, p := c.start(t, []*model.Service{newService(1, "2")})
	limited := func() *model.Service { return allow(newService(2, "3"), podAddr(0, 1), podAddr(1, 1)) }
	want := func(chain string, is bool) {
		t.Helper()
		if list := c.node.ListRuleset(t); strings.Contains(list, "chain "+chain+" {") != is {
			t.Errorf("chain %s is there: %t, want %t:\n%s", chain, !is, is, list)
		}
	}
	want("firewall-prerouting", false)
	want("filter-input", false)

	// Before it exists, and after, the world answers at the address of the Service.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for f := range model.NumFamilies {
		wg.Go(func() {
			for asked := 0; ; asked++ {
				select {
				case <-stop:
					t.Logf("%s: asked %d times", f, asked)
					return
				default:
				}
				if pod, _, err := askFrom(c.ext, netip.Addr{}, "tcp", place(f, "lb 2"), 20*time.Millisecond); err == nil && pod != "world" {
					t.Errorf("%s: %s answered a client that is not allowed", f, pod)
					return
				}
			}
		})
	}
	for range 10 {
		p.put(t, limited())
		want("firewall-prerouting", true)
		want("firewall-output", true)
		for f := range model.NumFamilies {
			c.send(t, flow{"pod1", "lb 2", "pod3"}, f, "tcp")
			c.send(t, flow{"pod2", "lb 2", "dropped"}, f, "udp")
			c.send(t, flow{"node", "lb 2", "dropped"}, f, "tcp")
		}
		p.drop(t, "s2")
		want("firewall-prerouting", true)
		p.sweep(t)
		want("firewall-prerouting", false)
		want("firewall-output", false)
	}
	close(stop)
	wg.Wait()

	p.put(t, newService(3))
	want("filter-input", true)
	for f := range model.NumFamilies {
		t.Run(fmt.Sprintf("%s without endpoints", f), func(t *testing.T) { c.send(t, flow{"ext", "nodeport 3", "rejected"}, f, "tcp") })
	}
	p.put(t, newService(3, "2"))
	p.sweep(t)
	want("filter-input", false)
}
