package demo

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// standIn does weft's work in the demo with nft(8), to test only the cluster and the probes.
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
		ip daddr 10.96.0.30 reject
	}
}
table ip6 standin {
	chain prerouting {
		type nat hook prerouting priority dstnat
		ip6 daddr fd00:96::10 tcp dport 80 dnat to [fd00:1:0:2::11]:8080
	}
}`

func newTestDemo(t *testing.T) *demo {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	d, err := newDemo(t.Output())
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	n := d.cluster.nodes[0]
	if _, err := d.runNft(t.Context(), n, "--", standIn); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCluster(t *testing.T) {
	d := newTestDemo(t)
	ctx := t.Context()
	app := d.cluster.pod("app")
	if observed, err := d.spreadOver(ctx, app.space, "tcp", webTCP, []netip.Addr{app.V4}); err != nil {
		t.Errorf("cluster ip: %s: %v", observed, err)
	}
	if hasIPv6() {
		if err := d.cluster.awaitIPv6(ctx); err != nil {
			t.Fatal(err)
		}
		a, err := d.cluster.pod("app").ask(ctx, "tcp", netip.AddrPortFrom(webVIP.V6, webPort))
		if err != nil || a.pod != "web-3" || a.seen.Addr() != d.cluster.pod("app").V6 {
			t.Errorf("ask over IPv6: %+v, %v", a, err)
		}
	}
	// From outside: masqueraded, so that the node's own address is seen.
	nodePort := netip.AddrPortFrom(d.cluster.nodes[0].V4, webNodePort)
	for i, n := range d.cluster.nodes {
		own, err := n.Addresses()
		if err != nil {
			t.Fatal(err)
		}
		if observed, err := d.spreadOver(ctx, d.cluster.client, "tcp", nodePort, own); (err == nil) != (i == 0) {
			t.Errorf("node port of the first node, addresses of %s: %s: %v", n.Name, observed, err)
		}
	}
	// Pods reach each other without translation, on one node and across.
	for _, name := range []string{"web-1", "web-3"} {
		a, err := d.cluster.pod("app").ask(ctx, "udp", netip.AddrPortFrom(d.cluster.pod(name).V4, serverUDP))
		if err != nil || a.pod != name {
			t.Errorf("ask %s: %+v, %v", name, a, err)
		}
	}
	if _, err := d.cluster.pod("app").ask(ctx, "tcp", netip.MustParseAddrPort("10.96.0.30:80")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("ask an address that rejects: %v, want %v", err, syscall.ECONNREFUSED)
	}
}

func TestBlocked(t *testing.T) {
	d := newTestDemo(t)
	if _, err := d.reachService(t.Context(), ""); err != nil {
		t.Errorf("without a denied pod: %v", err)
	}
	if _, err := d.runNft(t.Context(), d.cluster.nodes[0], "add", "element", "ip", "standin", "denied", "{ 10.1.1.21 }"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.reachService(t.Context(), "shell-1"); err != nil {
		t.Errorf("with shell-1 denied: %v", err)
	}
	if _, err := d.reachService(t.Context(), "shell-2"); err == nil {
		t.Error("shell-2 is taken for denied")
	}
}

func TestLongLived(t *testing.T) {
	d := newTestDemo(t)
	ctx := t.Context()
	app := d.cluster.pod("app")
	var err error
	if d.stream, err = startStream(ctx, app.space, webTCP); err != nil {
		t.Fatal(err)
	}
	flow, err := startFlow(ctx, app.space, 40000, webUDP)
	if err != nil {
		t.Fatal(err)
	}
	defer flow.stop()
	if err := await(ctx, askTimeout, func(context.Context) error {
		n, err := d.stream.check()
		if pod, _, _, flowErr := flow.state(); err != nil || flowErr != nil || n < 4096 || pod != "web-3" {
			return errors.Join(err, flowErr, errors.New("not yet"))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.undisturbed(ctx, func() error { return nil }); err != nil {
		t.Errorf("nothing disturbs, but: %v", err)
	}
	// The servers are cut off: everything must notice.
	if _, err := d.runNft(ctx, d.cluster.nodes[0], "insert", "rule", "ip", "standin", "forward", "tcp", "dport", "8080", "reject", "with", "tcp", "reset"); err != nil {
		t.Fatal(err)
	}
	if err := await(ctx, 2*askTimeout, func(context.Context) error {
		if _, err := d.stream.check(); err == nil {
			return errors.New("the stream is up")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	flows := startNewFlows(ctx, target{app.space, "tcp", webTCP})
	if err := await(ctx, askTimeout, func(context.Context) error {
		if _, err := flows.check(); err == nil {
			return errors.New("no flow failed")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	flows.stop()
	if _, err := flows.check(); err == nil {
		t.Error("the error is forgotten after the end")
	}
}

func TestProcess(t *testing.T) {
	d := newTestDemo(t)
	p, err := start(d.cluster.client.Namespace, d.dir, "idle", "idle")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.expect(t.Context(), "ready"); err != nil {
		t.Fatal(err)
	}
	if err := p.running(); err != nil {
		t.Error(err)
	}
	began := time.Now()
	p.stop()
	if time.Since(began) > stopTimeout {
		t.Error("the process had to be killed")
	}
	if err := p.running(); err == nil || !strings.Contains(err.Error(), p.name) {
		t.Errorf("running = %v, want an error that names %s", err, p.name)
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
