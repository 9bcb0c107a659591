package cost_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// sendTime returns how long the fastest of some packets to the own address takes to be sent, with
// all that happens to it at the hooks on loopback.
func sendTime(t testing.TB, ns *nfttest.NS) time.Duration {
	t.Helper()
	least := time.Hour
	nfttest.NoError(t, ns.Do(func() error {
		to, err := net.ListenPacket("udp4", "127.0.0.1:9")
		if err != nil {
			return err
		}
		defer func() { _ = to.Close() }()
		from, err := net.Dial("udp4", to.LocalAddr().String())
		if err != nil {
			return err
		}
		defer func() { _ = from.Close() }()
		for range 400 {
			began := time.Now()
			if _, err := from.Write([]byte("x")); err != nil {
				return err
			}
			least = min(least, time.Since(began))
		}
		return nil
	}))
	return least
}

// packetSets are the sets of BenchmarkPacket. The address and the port of the packet are in all.
func packetSets() string {
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ", "+format, i>>8, i&255)
		}
		return b.String()
	}
	var b strings.Builder
	for _, n := range []int{100, 10_000, 50_000} {
		fmt.Fprintf(&b, "set h%d { type ipv4_addr; elements = { 127.0.0.1%s } }\n", n, list(n, "10.%d.%d.1"))
		fmt.Fprintf(&b, "set r%d { type ipv4_addr; flags interval; elements = { 127.0.0.1%s } }\n", n, list(n, "10.%d.%d.0/25"))
	}
	for _, n := range []int{100, 1000, 8000} {
		fmt.Fprintf(&b, "set p%d { type ipv4_addr . inet_service; flags interval; elements = { 127.0.0.1 . 9%s } }\n", n, list(n, "10.1.%d.%d . 80"))
		fmt.Fprintf(&b, "set q%d { type ipv4_addr . inet_service; flags interval; elements = { 127.0.0.1 . 9%s } }\n", n, list(n, "10.1.%d.%d . 1001-4007"))
		// All elements match in their first field.
		fmt.Fprintf(&b, "set o%d { type inet_proto . ipv4_addr . inet_service; flags interval; elements = { 17 . 127.0.0.1 . 9%s } }\n", n, list(n, "17 . 10.1.%d.%d . 80"))
	}
	b.WriteString("set b1000 { type inet_service; elements = { 9")
	for i := range 1000 {
		fmt.Fprintf(&b, ", %d", 1000+i)
	}
	b.WriteString(" } }\nset d { type ipv4_addr; flags dynamic; }\nset e { type ipv4_addr; flags dynamic; }\ncounter c { }\nchain e { }\n")
	return b.String()
}

// expressions are rules that do not end the way of a packet, with an expression each.
var expressions = []string{
	"meta l4proto udp", "meta mark 0", "meta mark set 0", "meta priority set 0", `oifname "lo"`, "meta length > 1", "meta cpu >= 0", "meta pkttype host",
	"meta skuid >= 0", "meta random >= 0", "ip saddr 127.0.0.1", "ip saddr 127.0.0.0/8", "udp dport 9", "udp dport 1-100", "@th,0,64 != 1", "meta mark & 0xff == 0",
	"ct state new,established,untracked", "ct mark 0", "ct mark set 0", "ct direction original", "ct packets >= 0",
	"fib daddr type local", "rt mtu > 0", "rt nexthop 127.0.0.1", "numgen inc mod 2 >= 0", "jhash ip saddr mod 2 >= 0",
	"ip option lsrr missing", "tcp option maxseg missing",
	"counter", "counter name c", "limit rate 1000000/second burst 4000000 packets", "quota over 1000 mbytes", "notrack", "jump e",
	"ip saddr { 127.0.0.1, 10.0.0.2 }", "udp dport { 9, 10 }", "udp dport { 1-100, 200-300 }", "ip saddr . udp dport { 127.0.0.1-127.0.0.5 . 1-9 }",
	"ip saddr @h100", "ip saddr @h50000", "ip saddr @r100", "ip saddr @r10000", "ip saddr @r50000", "udp dport @b1000",
	"ip saddr . udp dport @p100", "ip saddr . udp dport @p1000", "ip saddr . udp dport @p8000", "ip saddr . udp dport @q100", "ip saddr . udp dport @q1000", "ip saddr . udp dport @q8000",
	"meta l4proto . ip saddr . udp dport @o100", "meta l4proto . ip saddr . udp dport @o8000",
	"update @d { ip saddr }", "add @e { ip saddr limit rate over 1/second }",
	"ip saddr vmap { 127.0.0.9 : drop }", "meta mark set ip saddr map { 127.0.0.1 : 5 }",
	"ip ttl set 64", "ip dscp set 0", "udp sport set 1234", "log group 7",
}

// BenchmarkPacket prints how long a packet takes for each kind of expression and of set, and what
// was predicted.
func BenchmarkPacket(t *testing.B) {
	ns := nfttest.New(t)
	text := "table ip x {\n" + packetSets() + "chain out { type filter hook output priority 0; }\n}\ntable ip tracks {\nchain out { type filter hook output priority 1; ct state new counter; }\n}\n"
	ns.Nft(t, text)
	table, lookups := declared.Parse(text)[0], map[string]int{}
	for _, s := range table.Contents {
		lookups[s.Decl.Name] = contentOf(s).Lookup(s.Decl)
	}
	const copies = 300
	listen(t, ns)
	base := sendTime(t, ns)
	for _, rule := range expressions {
		r, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: rule}, table.Sets)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		predicted := cost.Packet(r).Worst
		for c := range cost.Calls(r) {
			predicted += lookups[c.Set]
		}
		if _, err := ns.Output("flush chain ip x out\ntable ip x {\nchain out {\n"+strings.Repeat(r.Text+"\n", copies)+"}\n}\n", "nft", "-f", "-"); err != nil {
			t.Errorf("%s: %.200v", rule, err)
			continue
		}
		report(t, rule, time.Duration(predicted), func() time.Duration { return (sendTime(t, ns) - base) / copies })
	}
}

// BenchmarkConnections prints how long the first packet of a connection takes for "ct count" after
// others, and what was predicted.
func BenchmarkConnections(b *testing.B) {
	ns := nfttest.New(b)
	const connections, copies = 300, 10
	base := sendTime(b, ns)
	ns.Nft(b, "table ip x {\nchain out {\ntype filter hook output priority 0;\n"+strings.Repeat("ct count over 100000\n", copies)+"}\n}\n")
	rule := fmt.Sprintf("ct count over %d drop", connections)
	r := nfttest.Must(compile.CompileRule(nft.FamilyIP, nft.Rule{Text: rule}, nil))
	var all []net.Conn
	nfttest.NoError(b, ns.Do(func() error {
		to, err := net.ListenPacket("udp4", "127.0.0.1:9")
		if err != nil {
			return err
		}
		b.Cleanup(func() { _ = to.Close() })
		for range connections {
			c, err := net.Dial("udp4", "127.0.0.1:9")
			if err != nil {
				return err
			}
			all = append(all, c)
			if _, err := c.Write([]byte("x")); err != nil {
				return err
			}
		}
		return nil
	}))
	least := time.Hour
	for _, c := range all[connections/2:] {
		began := time.Now()
		if _, err := c.Write([]byte("x")); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(began))
	}
	report(b, rule, time.Duration(cost.Packet(r).Worst), func() time.Duration { return (least - base) / copies })
	for _, c := range all {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	}
}

// listen gets the packets that rules log to group 7.
func listen(b *testing.B, ns *nfttest.NS) {
	b.Helper()
	nfttest.NoError(b, ns.Do(func() error {
		c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
		if err != nil {
			return err
		}
		b.Cleanup(func() { _ = c.Close() })
		// A nfgenmsg of the group, then NFULA_CFG_CMD with NFULNL_CFG_CMD_BIND.
		m := netlink.Message{Header: netlink.Header{Type: unix.NFNL_SUBSYS_ULOG<<8 | 1, Flags: netlink.Request | netlink.Acknowledge}}
		m.Data = append([]byte{0, 0, 0, 7}, 5, 0, 1, 0, 1, 0, 0, 0)
		_, err = c.Execute(m)
		return err
	}))
}

// report runs a benchmark once, and prints the measured and the predicted time.
func report(b *testing.B, name string, predicted time.Duration, measure func() time.Duration) {
	b.Helper()
	b.Run(strings.ReplaceAll(name, "/", "|"), func(b *testing.B) {
		var took time.Duration
		for b.Loop() {
			took = max(measure(), 1)
		}
		b.ReportMetric(float64(predicted), "predicted-ns")
		b.ReportMetric(float64(took), "measured-ns")
		b.ReportMetric(float64(predicted)/float64(took), "ratio")
		b.ReportMetric(0, "ns/op")
	})
}
