package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// webPolicy is a NetworkPolicy that lets the nodes, app and other pods reach web, and one that
// lets shell-1 reach web only.
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

// isolateWeb applies the NetworkPolicy that lets shell-1 reach web, and not shell-2.
func (d *demo) isolateWeb(ctx context.Context) (string, error) {
	if _, err := d.reachWeb(ctx); err != nil {
		return "before the policy", err
	}
	return d.applyWebPolicy(ctx, "shell-1")
}

// admitShell lets both reach web.
func (d *demo) admitShell(ctx context.Context) (string, error) {
	return d.applyWebPolicy(ctx, "shell-1", "shell-2")
}

// applyWebPolicy writes the NetworkPolicy that admits shells, and waits until the nodes
// enforce it.
func (d *demo) applyWebPolicy(ctx context.Context, shells ...string) (string, error) {
	roles := ""
	var dropped []string
	for _, shell := range []string{"shell-1", "shell-2"} {
		if slices.Contains(shells, shell) {
			roles += ", " + shell
		} else {
			dropped = append(dropped, shell)
		}
	}
	if err := d.writeManifest("policy.yaml", fmt.Sprintf(webPolicy, roles)); err != nil {
		return "", err
	}
	var observed string
	err := await(ctx, readyTimeout, func(ctx context.Context) (err error) {
		observed, err = d.reachWeb(ctx, dropped...)
		return err
	})
	return observed, err
}

// reachWeb asks each pod of web from both shells, and checks that only the named ones are
// dropped by all.
func (d *demo) reachWeb(ctx context.Context, dropped ...string) (string, error) {
	var out []string
	var errs []error
	for _, shell := range []string{"shell-1", "shell-2"} {
		want := slices.Contains(dropped, shell)
		for _, server := range d.cluster.servers() {
			got, err := d.cluster.pod(shell).blocked(ctx, "tcp", netip.AddrPortFrom(server.V4, serverTCP))
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%s to %s: %w", shell, server.Name, err))
			case got != want:
				errs = append(errs, fmt.Errorf("%s to %s: dropped is %t, should be %t", shell, server.Name, got, want))
			}
		}
		if want {
			out = append(out, shell+" is dropped by the pods of web on both nodes")
		} else {
			out = append(out, shell+" gets through")
		}
	}
	return strings.Join(out, ", "), errors.Join(errs...)
}
