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

// rounds is how often a Service is asked to see it spread: with three
// endpoints one is left out by chance in fewer than one of 10^9 runs.
const rounds = 60

func (d *demo) startAll(ctx context.Context) (string, error) {
	began := time.Now()
	for _, n := range d.cluster.nodes {
		if err := d.startWeft(ctx, n); err != nil {
			return "", err
		}
	}
	var out []string
	for _, n := range d.cluster.nodes {
		list, err := n.weft.ready(ctx)
		if err != nil {
			return "", err
		}
		rules, err := n.readRuleset()
		if err != nil {
			return "", err
		}
		ruleCount, elements := rules.size()
		out = append(out, fmt.Sprintf("%s: %d fragments, revision %d, %d rules, %d elements",
			n.Name, len(list.GetFragments()), list.GetRevision(), ruleCount, elements))
	}
	return fmt.Sprintf("%s; after %s", strings.Join(out, "; "), time.Since(began).Round(time.Millisecond)), nil
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

// askWeb asks web over TCP and UDP from the app pod, whose own address the servers should see.
func (d *demo) askWeb(ctx context.Context, vip netip.Addr) (string, error) {
	app := d.cluster.pod("app")
	return d.spread(ctx, app.space, vip, webPort, dnsPort, app.of(vip))
}

func (d *demo) nodePort(ctx context.Context) (string, error) {
	var out []string
	for _, n := range d.cluster.nodes {
		own, err := n.Addresses()
		if err != nil {
			return "", err
		}
		observed, err := d.spread(ctx, d.cluster.client, n.V4, webNodePort, dnsNodePort, own...)
		if out = append(out, observed); err != nil {
			return strings.Join(out, "; "), err
		}
	}
	return strings.Join(out, "; "), nil
}

// spread asks an address over TCP and UDP. It checks that each of web's endpoints answers, and that they see one
// of the given addresses.
func (d *demo) spread(ctx context.Context, from space, to netip.Addr, tcp, udp uint16, seen ...netip.Addr) (string, error) {
	overTCP, err := d.spreadOver(ctx, from, "tcp", netip.AddrPortFrom(to, tcp), seen)
	if err != nil {
		return overTCP, err
	}
	overUDP, err := d.spreadOver(ctx, from, "udp", netip.AddrPortFrom(to, udp), seen)
	return overTCP + "; " + overUDP, err
}

// spreadOver is spread over one protocol.
func (d *demo) spreadOver(ctx context.Context, from space, network string, to netip.AddrPort, seen []netip.Addr) (string, error) {
	t, err := from.askMany(ctx, rounds, network, to)
	observed := fmt.Sprintf("%s %s: %s; seen: %s", network, to, t, t.sources())
	if err != nil {
		return observed, err
	}
	if want := strings.Join(d.web(), ", "); t.names() != want {
		return observed, fmt.Errorf("answers should come from %s", want)
	}
	for addr := range t.seen {
		if !slices.Contains(seen, addr) {
			return observed, fmt.Errorf("the servers should see one of %s", seen)
		}
	}
	return observed, nil
}

// removeEndpoint takes out the endpoint that a UDP client talks to. The server
// itself keeps running and would go on answering.
func (d *demo) removeEndpoint(ctx context.Context) (string, error) {
	// Not the last of them: where the endpoints have numbers, others must then
	// change theirs, and with that a restarted weft must do the same.
	pod := d.web()[0]
	if pod == d.stream.pod {
		pod = d.web()[1]
	}
	flow, err := d.flowTo(ctx, pod)
	if err != nil {
		return "", err
	}
	defer flow.stop()
	began := time.Now()
	if err := d.setWeb(pod); err != nil {
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
	observed := fmt.Sprintf("%s answered, then %s from %s after the removal on; at most %d packets without answer; "+
		"TCP connection to %s: %d bytes back and forth", pod, now, took.Round(time.Millisecond), lost, d.stream.pod, bytes)
	if err := errors.Join(err, streamErr); err != nil {
		return observed, err
	}
	if took > time.Second {
		return observed, errors.New("it took more than a second")
	}
	app := d.cluster.pod("app")
	after, err := d.spreadOver(ctx, app.space, "udp", webUDP, []netip.Addr{app.V4})
	return observed + "; new flows: " + after, err
}

// flowTo starts UDP flows to web until one is answered by the named pod.
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
