package demo

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// standIn does weft's work in the demo with nft(8), to test only the probes.
const standIn = `
table ip standin {
	chain prerouting {
		type nat hook prerouting priority dstnat
		ip daddr 10.96.0.10 tcp dport 80 dnat to numgen random mod 3 map { 0 : 10.1.1.11, 1 : 10.1.1.12, 2 : 10.1.2.11 }:8080
		ip daddr 10.96.0.10 udp dport 53 udp sport 40000-41000 dnat to 10.1.2.11:5353
		ip daddr 10.96.0.10 udp dport 53 dnat to 10.1.1.11:5353
		ip daddr 172.18.0.1 tcp dport 30080 meta mark set 1 dnat to numgen random mod 3 map { 0 : 10.1.1.11, 1 : 10.1.1.12, 2 : 10.1.2.11 }:8080
	}
	chain postrouting {
		type nat hook postrouting priority srcnat
		meta mark 1 masquerade
	}
	set denied { type ipv4_addr; }
	chain forward {
		type filter hook forward priority filter
		ip saddr @denied drop
	}
}`

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newTestDemo(t *testing.T) *demo {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	d, err := newDemo(t.Output())
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must(t, err)
	runNft(t, d, "--", standIn)
	return d
}

// runNft is on the first node.
func runNft(t *testing.T, d *demo, args ...string) {
	t.Helper()
	_, err := d.runNft(t.Context(), d.cluster.nodes[0], args...)
	must(t, err)
}

// TestBlocked: the probes notice a wrong client address, and whether a pod reaches the Service.
func TestBlocked(t *testing.T) {
	d := newTestDemo(t)
	app := d.cluster.pod("app")
	for seen, right := range map[netip.Addr]bool{app.V4: true, d.cluster.pod("shell-1").V4: false} {
		if observed, err := d.spreadOver(t.Context(), app.space, "tcp", webTCP, []netip.Addr{seen}); (err == nil) != right {
			t.Errorf("as from %s: %s: %v", seen, observed, err)
		}
	}
	if _, err := d.reachService(t.Context(), ""); err != nil {
		t.Errorf("without a denied pod: %v", err)
	}
	runNft(t, d, "add", "element", "ip", "standin", "denied", "{ 10.1.1.21 }")
	if _, err := d.reachService(t.Context(), "shell-1"); err != nil {
		t.Errorf("with shell-1 denied: %v", err)
	}
	if _, err := d.reachService(t.Context(), "shell-2"); err == nil {
		t.Error("shell-2 is taken for denied")
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	must(t, await(t.Context(), 2*askTimeout, func(context.Context) error {
		if done() {
			return nil
		}
		return errors.New("not yet: " + what)
	}))
}

func TestLongLived(t *testing.T) {
	d := newTestDemo(t)
	ctx := t.Context()
	app := d.cluster.pod("app")
	var err error
	d.stream, err = startStream(ctx, app.space, webTCP)
	must(t, err)
	flow, err := startFlow(ctx, app.space, 40000, webUDP)
	must(t, err)
	defer flow.stop()
	eventually(t, "both go on", func() bool {
		n, err := d.stream.check()
		pod, _, _, flowErr := flow.state()
		return err == nil && flowErr == nil && n >= 4096 && pod == "web-3"
	})
	if _, err := d.undisturbed(ctx, func() error { return nil }); err != nil {
		t.Errorf("nothing disturbs, but: %v", err)
	}
	// The servers are cut off: everything must notice.
	runNft(t, d, "insert", "rule", "ip", "standin", "forward", "tcp", "dport", "8080", "reject", "with", "tcp", "reset")
	eventually(t, "the stream notices", func() bool { _, err := d.stream.check(); return err != nil })
	flows := startNewFlows(ctx, target{app.space, "tcp", webTCP})
	eventually(t, "a new flow fails", func() bool { _, err := flows.check(); return err != nil })
	flows.stop()
	if _, err := flows.check(); err == nil {
		t.Error("the error is forgotten after the end")
	}
}

func TestParseAnswer(t *testing.T) {
	a, err := parseAnswer("web-1 [::ffff:10.1.1.20]:4000 some text\n")
	want := answer{pod: "web-1", seen: netip.MustParseAddrPort("10.1.1.20:4000")}
	if err != nil || a != want {
		t.Errorf("parseAnswer = %+v, %v; want %+v", a, err, want)
	}
	for _, text := range []string{"", "web-1", "web-1 somewhere"} {
		if a, err := parseAnswer(text); err == nil || a != (answer{}) {
			t.Errorf("parseAnswer(%q) = %+v, %v; want an error", text, a, err)
		}
	}
}
