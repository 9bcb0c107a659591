package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	// interval is the time between two looks at what does not answer yet.
	interval = 100 * time.Millisecond
	// answerTime bounds one question. What is lost would be sent again after a second.
	answerTime = 500 * time.Millisecond
	// webName is the Service that the cluster has before the user begins, and the port of its pods.
	webName, webPort = "web", 8080
)

// What has to answer on a node.
const (
	hasRules  = "rules of weft"
	clusterIP = "ClusterIP"
	fromPod   = "ClusterIP, from a pod"
	nodePort  = "NodePort, from outside"
	dns       = "DNS"
)

// check is one thing that has to answer on a node.
type check struct {
	node *lab.Node
	what string
	ask  func(context.Context) error
}

// service is where a Service is reached.
type service struct {
	address  netip.Addr
	nodePort int
	// pods has the address of one pod on each node that has one.
	pods map[string]netip.Addr
}

// checks are those of a node. A node without a pod of the Service has no pods at all.
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
			return get(ctx, w.lab.Outside.Namespace, net.JoinHostPort(n.Addresses.V4.String(), strconv.Itoa(s.nodePort)), "/hostname")
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

// get asks over HTTP from a namespace, with a connection of its own. The server is agnhost: /hostname has the name of a pod, /dial
// has one too, as one of its responses.
func get(ctx context.Context, from *lab.Namespace, address, path string) error {
	client := http.Client{Transport: &http.Transport{DialContext: from.Dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), webName+"-") {
		return fmt.Errorf("get %s%s: %s: %s, which does not have the name of a pod", address, path, res.Status, body)
	}
	return nil
}

// resolve asks the cluster's DNS for the address of the Service.
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

// observed is when each thing answered first on the last of the nodes, since the start.
type observed map[string]time.Duration

// last is when everything answered.
func (o observed) last() time.Duration {
	var last time.Duration
	for _, d := range o {
		last = max(last, d)
	}
	return last
}

// observe asks until everything has answered, and returns when that was. The error names what does not.
func observe(ctx context.Context, start time.Time, checks []check) (observed, error) {
	when, errs := make([]time.Duration, len(checks)), make([]error, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		// Each asks by itself, so that what is lost does not delay what answers.
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

// await asks until there is an answer.
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
