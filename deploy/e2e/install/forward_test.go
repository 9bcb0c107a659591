package install

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const (
	// interval is the time between two probes of a check.
	interval = 100 * time.Millisecond
	// answerTime bounds one question. A retransmission would take a second.
	answerTime = 500 * time.Millisecond
	// webName is the cluster's initial Service, and webPort its pods' port.
	webName, webPort = "web", 8080
)

const (
	hasRules  = "rules of weft"
	clusterIP = "ClusterIP"
	fromPod   = "ClusterIP, from a pod"
	nodePort  = "NodePort, from outside"
	dns       = "DNS"
)

// check must be answered on a node.
type check struct {
	node *lab.Node
	what string
	ask  func(context.Context) error
}

type service struct {
	address  netip.Addr
	nodePort int
	// one pod by node
	pods map[string]netip.Addr
}

// A node without a pod of the Service has no pods at all.
func (w *world) checks(n *lab.Node, s service) []check {
	vip := netip.AddrPortFrom(s.address, 80).String()
	all := []check{
		{n, hasRules, func(ctx context.Context) error {
			out, err := n.Run(ctx, "nft", "list", "tables")
			if err == nil && !strings.Contains(out, "weft") {
				err = errors.New("nft lists no table of weft")
			}
			return err
		}},
		{n, clusterIP, func(ctx context.Context) error { return get(ctx, n.Namespace, vip, "/hostname") }},
		{n, nodePort, func(ctx context.Context) error {
			return get(ctx, w.Lab.Outside.Namespace, net.JoinHostPort(n.Addresses.V4.String(), strconv.Itoa(s.nodePort)), "/hostname")
		}},
		{n, dns, func(ctx context.Context) error { return resolve(ctx, n.Namespace, s.address) }},
	}
	if pod, ok := s.pods[n.Name()]; ok {
		query := url.Values{"host": {s.address.String()}, "port": {"80"}, "protocol": {"http"}, "request": {"hostname"}, "tries": {"1"}}
		all = append(all, check{n, fromPod, func(ctx context.Context) error {
			return get(ctx, n.Namespace, netip.AddrPortFrom(pod, webPort).String(), "/dial?"+query.Encode())
		}})
	}
	return all
}

// get asks the server agnhost: /hostname has a pod's name, and /dial has it in its responses.
func get(ctx context.Context, from *lab.Namespace, address, path string) error {
	answer, err := from.Get(ctx, "http://"+address+path, answerTime)
	if err == nil && !strings.Contains(answer.Body, webName+"-") {
		err = fmt.Errorf("get %s%s: %d: %s, which does not have the name of a pod", address, path, answer.Status, answer.Body)
	}
	return err
}

func resolve(ctx context.Context, from *lab.Namespace, want netip.Addr) error {
	server := netip.AddrPortFrom(cluster.DNSAddresses()[0], 53).String()
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) { return from.Dial(ctx, network, server) }}
	name := webName + ".default.svc." + cluster.ClusterDomain + "."
	got, err := resolver.LookupNetIP(ctx, "ip4", name)
	if err != nil {
		return err
	}
	if !slices.Contains(got, want) {
		return fmt.Errorf("%s is %v, not %s", name, got, want)
	}
	return nil
}

// observed has the first answer to each check on the slowest node, since the start.
type observed map[string]time.Duration

func (o observed) last() time.Duration {
	var last time.Duration
	for _, d := range o {
		last = max(last, d)
	}
	return last
}

// observe returns the times of first answers. The error names the checks without an answer.
func observe(ctx context.Context, start time.Time, checks []check) (observed, error) {
	when, errs := make([]time.Duration, len(checks)), make([]error, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		// Concurrently, so that a lost packet does not delay other checks.
		all.Go(func() {
			if errs[i] = c.await(ctx); errs[i] == nil {
				when[i] = time.Since(start)
			}
		})
	}
	all.Wait()
	seen := observed{}
	for i, c := range checks {
		seen[c.what] = max(seen[c.what], when[i])
	}
	return seen, errors.Join(errs...)
}

func (c *check) await(ctx context.Context) error {
	for tick := time.NewTicker(interval); ; {
		asked, cancel := context.WithTimeout(ctx, answerTime)
		err := c.ask(asked)
		cancel()
		if err == nil {
			tick.Stop()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %s does not answer: %w", c.node.Name(), c.what, err)
		case <-tick.C:
		}
	}
}
