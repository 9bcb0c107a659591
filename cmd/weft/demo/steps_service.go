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

func (d *demo) clusterIPOverTCP(ctx context.Context) (string, error) {
	app := d.cluster.pod("app")
	var err error
	if d.stream, err = startStream(ctx, app.space, netip.AddrPortFrom(webVIP.V4, webPort)); err != nil {
		return "", err
	}
	return d.clusterIP(ctx, "tcp", netip.AddrPortFrom(webVIP.V4, webPort))
}

func (d *demo) clusterIPOverUDP(ctx context.Context) (string, error) {
	return d.clusterIP(ctx, "udp", netip.AddrPortFrom(webVIP.V4, dnsPort))
}

func (d *demo) clusterIPOverIPv6(ctx context.Context) (string, error) {
	if !hasIPv6() {
		return "", &skipped{"this kernel has no IPv6"}
	}
	if err := d.cluster.awaitIPv6(ctx); err != nil {
		return "", err
	}
	tcp, err := d.clusterIP(ctx, "tcp", netip.AddrPortFrom(webVIP.V6, webPort))
	if err != nil {
		return tcp, err
	}
	udp, err := d.clusterIP(ctx, "udp", netip.AddrPortFrom(webVIP.V6, dnsPort))
	return tcp + "; " + udp, err
}

// clusterIP asks web from the app pod and checks who answers and what they see.
func (d *demo) clusterIP(ctx context.Context, network string, to netip.AddrPort) (string, error) {
	app := d.cluster.pod("app")
	t, err := app.askMany(ctx, rounds, network, to)
	observed := fmt.Sprintf("%s %s: %s; seen: %s", network, to, t, t.sources())
	if err != nil {
		return observed, err
	}
	if want := app.of(to.Addr()).String(); t.sources() != want {
		return observed, fmt.Errorf("the servers should see %s", want)
	}
	return observed, d.everyServer(t)
}

// everyServer checks that each of web's endpoints is in a tally.
func (d *demo) everyServer(t tally) error {
	if want := strings.Join(d.web(), ", "); t.names() != want {
		return fmt.Errorf("answers should come from %s", want)
	}
	return nil
}

func (d *demo) nodePort(ctx context.Context) (string, error) {
	var out []string
	for _, n := range d.cluster.nodes {
		for _, probe := range []struct {
			network string
			port    uint16
		}{{"tcp", webNodePort}, {"udp", dnsNodePort}} {
			to := netip.AddrPortFrom(n.V4, probe.port)
			t, err := d.cluster.client.askMany(ctx, rounds, probe.network, to)
			out = append(out, fmt.Sprintf("%s %s: %s; seen: %s", probe.network, to, t, t.sources()))
			if err == nil {
				err = errors.Join(d.everyServer(t), n.owns(t))
			}
			if err != nil {
				return strings.Join(out, "; "), err
			}
		}
	}
	return strings.Join(out, "; "), nil
}

// owns checks that all client addresses of a tally are the node's.
func (n *node) owns(t tally) error {
	own, err := n.Addresses()
	if err != nil {
		return err
	}
	for addr := range t.seen {
		if !slices.Contains(own, addr) {
			return fmt.Errorf("%s is not an address of %s", addr, n.Name)
		}
	}
	return nil
}

// removeEndpoint takes out the endpoint that a UDP client talks to. The server
// itself keeps running and would go on answering.
func (d *demo) removeEndpoint(ctx context.Context) (string, error) {
	if d.stream == nil {
		return "", errors.New("there is no TCP connection")
	}
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
	t, err := d.cluster.pod("app").askMany(ctx, rounds, "udp", netip.AddrPortFrom(webVIP.V4, dnsPort))
	return observed + "; new flows: " + t.String(), errors.Join(err, d.everyServer(t))
}

// flowTo starts UDP flows to web until one is answered by the named pod.
func (d *demo) flowTo(ctx context.Context, name string) (*udpFlow, error) {
	for port := uint16(40000); port < 40100; port++ {
		flow, err := startFlow(ctx, d.cluster.pod("app").space, port, netip.AddrPortFrom(webVIP.V4, dnsPort))
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
