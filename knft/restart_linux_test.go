package knft_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// typed declares sets and maps that the kernel reports with other words.
func typed(tx *knftables.Transaction) {
	ends := &knftables.Map{Name: "ends", TypeOf: "ip daddr . meta l4proto . th dport : ip daddr . th dport", Comment: ptr("a map")}
	dns := endOf("udp")
	dns.Comment = ptr("dns")
	add(&knftables.Table{Comment: ptr("typed")}, &knftables.Chain{Name: "c", Comment: ptr("a chain")})(tx)
	flush(chain("c"))(tx)
	add(ends, &knftables.Set{Name: "marks", TypeOf: "meta mark", Flags: []knftables.SetFlag{knftables.IntervalFlag}})(tx)
	add(dns, member("marks", "0x10-0x20"), noted("c", "meta mark @marks return", "marked"))(tx)
}

func endOf(protocol string) *knftables.Element {
	return &knftables.Element{Map: "ends", Key: []string{"10.0.0.1", protocol, "53"}, Value: []string{"10.1.0.1", "5353"}}
}

// TestBothRestartOnKernel: after both restart, the same transaction changes nothing, and single
// elements can be changed.
func TestBothRestartOnKernel(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns, dir, socket := nfttest.New(t), t.TempDir(), aggregatortest.Socket(t)
	start := func() (d *aggregatortest.Daemon, stop func()) {
		conn, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
		if err != nil {
			t.Fatal(err)
		}
		d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: conn, StateDir: dir}, Socket: socket})
		return d, func() {
			if err := d.Stop(); err != nil {
				t.Error(err)
			}
			_ = conn.Close()
		}
	}
	d, stop := start()
	c := d.Dial(t, "agent")
	nft := newAdapter(t, c, sharedConfig)
	must(t, nft, typed)
	before := ns.Run(t, "nft", "-a", "list", "ruleset")
	_, _ = nft.Close(), c.Close()
	stop()

	d, stop = start()
	defer stop()
	nft = newAdapter(t, d.Dial(t, "agent"), sharedConfig)
	must(t, nft, typed)
	if after := ns.Run(t, "nft", "-a", "list", "ruleset"); after != before {
		t.Errorf("the table changed: before\n%s\nafter\n%s", before, after)
	}
	must(t, nft,
		remove(&knftables.Element{Map: "ends", Key: []string{"10.0.0.1", "17", "domain"}}),
		create(endOf("tcp")),
		remove((&scene{t: t, nft: nft}).rule("c", "marked")),
	)
	after := list(t, ns, sharedConfig.Family, sharedConfig.Table)
	if strings.Contains(after, "udp") || !strings.Contains(after, "10.0.0.1 . tcp . 53 : 10.1.0.1 . 5353") || strings.Contains(after, "@marks") {
		t.Errorf("the table is now\n%s", after)
	}
}
