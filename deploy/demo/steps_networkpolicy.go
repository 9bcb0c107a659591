package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// webPolicy admits the nodes, app and other pods to web, and restricts shell-1 to web.
const webPolicy = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: demo}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
  ingress:
    - from:
        - ipBlock: {cidr: 172.18.0.0/24}
        - ipBlock: {cidr: "fd00:18::/64"}
        - podSelector: {matchExpressions: [{key: role, operator: In, values: [app%s]}]}
      ports: [{port: http}, {port: 5353, protocol: UDP}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shell-1, namespace: demo}
spec:
  podSelector: {matchLabels: {role: shell-1}}
  policyTypes: [Egress]
  egress: [{to: [{podSelector: {matchLabels: {app: web}}}]}]
`

func (d *demo) isolateWeb(ctx context.Context) (string, error) {
	if _, err := d.reachPods(ctx); err != nil {
		return "before the policy", err
	}
	return d.applyWebPolicy(ctx, ", shell-1", "shell-2")
}

func (d *demo) admitShell(ctx context.Context) (string, error) {
	return d.applyWebPolicy(ctx, ", shell-1, shell-2")
}

func (d *demo) applyWebPolicy(ctx context.Context, roles string, dropped ...string) (string, error) {
	if err := d.manifests.write("policy.yaml", fmt.Sprintf(webPolicy, roles)); err != nil {
		return "", err
	}
	var observed string
	err := await(ctx, readyTimeout, func(ctx context.Context) (err error) {
		observed, err = d.reachPods(ctx, dropped...)
		return err
	})
	return observed, err
}

func (d *demo) reachPods(ctx context.Context, dropped ...string) (string, error) {
	to := cli.Map(d.cluster.servers(), func(p *pod) netip.AddrPort { return netip.AddrPortFrom(p.V4, serverTCP) })
	return d.reach(ctx, to, dropped)
}

func (d *demo) reachService(ctx context.Context, dropped ...string) (string, error) {
	return d.reach(ctx, []netip.AddrPort{webTCP}, dropped)
}

// reach checks that only the named shells are dropped. A patch takes effect before it is acknowledged,
// so the first observation counts.
func (d *demo) reach(ctx context.Context, to []netip.AddrPort, dropped []string) (string, error) {
	var out []string
	var errs []error
	for _, shell := range []string{"shell-1", "shell-2"} {
		want := slices.Contains(dropped, shell)
		for _, addr := range to {
			got, err := d.cluster.pod(shell).blocked(ctx, "tcp", addr)
			if err == nil && got != want {
				err = fmt.Errorf("dropped is %t, should be %t", got, want)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s to %s: %w", shell, addr, err))
			}
		}
		if want {
			out = append(out, shell+" is dropped")
		} else {
			out = append(out, shell+" gets through")
		}
	}
	return strings.Join(out, ", "), errors.Join(errs...)
}
