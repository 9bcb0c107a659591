package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// With so many rounds over three endpoints, fewer than one of 10^9 runs misses one by chance.
const rounds = 60

func (d *demo) startAll(ctx context.Context) (string, error) {
	for _, n := range d.cluster.nodes {
		if err := d.startWeft(ctx, n); err != nil {
			return "", err
		}
	}
	var out []string
	for _, n := range d.cluster.nodes {
		if err := n.weft.ready(ctx); err != nil {
			return "", err
		}
		rules, err := n.readRuleset()
		if err != nil {
			return "", err
		}
		ruleCount, elements := rules.size()
		out = append(out, fmt.Sprintf("%s has %d rules and %d elements", n.Name, ruleCount, elements))
	}
	return strings.Join(out, ", "), nil
}

func (d *demo) clusterIP(ctx context.Context) (_ string, err error) {
	if d.stream, err = startStream(ctx, d.cluster.pod("app").space, webTCP); err != nil {
		return "", err
	}
	return d.askWeb(ctx, webVIP.V4)
}

func (d *demo) clusterIPOverIPv6(ctx context.Context) (string, error) {
	if !hasIPv6() {
		return "", &skipped{"this kernel has no IPv6"}
	}
	if err := d.cluster.awaitIPv6(ctx); err != nil {
		return "", err
	}
	return d.askWeb(ctx, webVIP.V6)
}

func (d *demo) askWeb(ctx context.Context, vip netip.Addr) (string, error) {
	app := d.cluster.pod("app")
	t, err := d.spread(ctx, app.space, vip, webPort, dnsPort, app.of(vip))
	return t.String(), err
}

func (d *demo) nodePort(ctx context.Context) (string, error) {
	var all tally
	for _, n := range d.cluster.nodes {
		own, err := n.Addresses()
		if err != nil {
			return "", err
		}
		t, err := d.spread(ctx, d.cluster.client, n.V4, webNodePort, dnsNodePort, own...)
		if all.add(t); err != nil {
			return all.String(), err
		}
	}
	return all.String(), nil
}

func (d *demo) spread(ctx context.Context, from space, to netip.Addr, tcp, udp uint16, seen ...netip.Addr) (tally, error) {
	all, err := d.spreadOver(ctx, from, "tcp", netip.AddrPortFrom(to, tcp), seen)
	if err != nil {
		return all, err
	}
	overUDP, err := d.spreadOver(ctx, from, "udp", netip.AddrPortFrom(to, udp), seen)
	all.add(overUDP)
	return all, err
}

func (d *demo) spreadOver(ctx context.Context, from space, network string, to netip.AddrPort, seen []netip.Addr) (tally, error) {
	t, err := from.askMany(ctx, rounds, network, to)
	if err != nil {
		return t, err
	}
	if want := strings.Join(d.manifests.web(d.cluster.servers()), ", "); t.names() != want {
		return t, fmt.Errorf("%s %s: answers should come from %s, got %s", network, to, want, t)
	}
	for addr := range t.seen {
		if !slices.Contains(seen, addr) {
			return t, fmt.Errorf("%s %s: the servers should see one of %s, got %s", network, to, seen, addr)
		}
	}
	return t, nil
}

// removeEndpoint removes an endpoint from the Service, but its server keeps answering the UDP client.
func (d *demo) removeEndpoint(ctx context.Context) (string, error) {
	// If an earlier endpoint than the last goes, endpoints must be renumbered, and a restarted weft
	// must do the same.
	pod := d.manifests.web(d.cluster.servers())[0]
	if pod == d.stream.pod {
		pod = d.manifests.web(d.cluster.servers())[1]
	}
	flow, err := d.flowTo(ctx, pod)
	if err != nil {
		return "", err
	}
	defer flow.stop()
	began := time.Now()
	if err := d.manifests.setWeb(pod); err != nil {
		return "", err
	}
	if err := await(ctx, 3*time.Second, func(context.Context) error {
		if now, _, _, err := flow.state(); err != nil || now == pod {
			return errors.Join(err, fmt.Errorf("%s still answers", now))
		}
		return nil
	}); err != nil {
		return "", err
	}
	now, since, lost, err := flow.state()
	took := since.Sub(began)
	bytes, streamErr := d.stream.check()
	observed := fmt.Sprintf("%s answers in place of %s after %s, at most %d packets were lost; the TCP connection to %s goes on (%d bytes)",
		now, pod, took.Round(time.Millisecond), lost, d.stream.pod, bytes)
	if err := errors.Join(err, streamErr); err != nil {
		return observed, err
	}
	if took > time.Second {
		return observed, errors.New("it took more than a second")
	}
	app := d.cluster.pod("app")
	after, err := d.spreadOver(ctx, app.space, "udp", webUDP, []netip.Addr{app.V4})
	return observed + "; new flows: " + after.String(), err
}

func (d *demo) flowTo(ctx context.Context, name string) (*udpFlow, error) {
	for port := uint16(40000); port < 40100; port++ {
		flow, err := startFlow(ctx, d.cluster.pod("app").space, port, webUDP)
		if err != nil {
			return nil, err
		}
		err = await(ctx, askTimeout, func(context.Context) error {
			if pod, _, _, err := flow.state(); err != nil || pod == "" {
				return errors.Join(err, errors.New("no answer"))
			}
			return nil
		})
		pod, _, _, _ := flow.state()
		if err == nil && pod == name {
			return flow, nil
		}
		flow.stop()
		if err != nil {
			return nil, fmt.Errorf("start udp flow from port %d: %w", port, err)
		}
	}
	return nil, fmt.Errorf("no flow went to %s", name)
}
