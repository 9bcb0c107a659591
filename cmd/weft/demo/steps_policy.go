package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The fragment of the policy publisher.
const (
	policyPublisher = "demo-policy"
	policyFragment  = "deny"
	policyTable     = "demo-policy"
	policySet       = "denied"
	policyNFT       = `table ip demo-policy {
	set denied {
		type ipv4_addr
		comment "pods that may not send"
	}
	chain forward {
		type filter hook forward priority filter; policy accept;
		ip saddr @denied counter drop
	}
}`
)

// publish sends an update to the policy process and waits for its commit.
func (d *demo) publish(ctx context.Context, format string, args ...any) error {
	if d.policy == nil {
		return errors.New("there is no policy process")
	}
	if _, err := fmt.Fprintf(d.policy.in, format+"\n", args...); err != nil {
		return fmt.Errorf("send to policy process: %w%s", err, d.policy.tail())
	}
	return d.policy.expect(ctx, `"revision"`)
}

// deny adds a pod to the set of denied pods, allow removes it.
func (d *demo) deny(ctx context.Context, pod string) error {
	return d.patchSet(ctx, fmt.Sprintf(`"add": [{"key": %q}]`, d.cluster.pod(pod).V4))
}

func (d *demo) allow(ctx context.Context, pod string) error {
	return d.patchSet(ctx, fmt.Sprintf(`"remove": [%q]`, d.cluster.pod(pod).V4))
}

func (d *demo) patchSet(ctx context.Context, change string) error {
	return d.publish(ctx, `{"patch": {"fragment": %q, "tables": [{"family": "ip", "name": %q, "elements": [{"set": %q, %s}]}]}}`,
		policyFragment, policyTable, policySet, change)
}

func (d *demo) publishPolicy(ctx context.Context) (string, error) {
	node := d.cluster.nodes[0]
	if _, err := d.blockedNow(ctx); err != nil {
		return "before the policy", err
	}
	var err error
	d.policy, err = start(node.Namespace, d.dir, "policy", "publish", "--stdin", "--publisher", policyPublisher, "--socket", node.weft.socket)
	if err != nil {
		return "", err
	}
	if err := d.publish(ctx, `{"snapshot": {"name": %q, "nft": %q}}`, policyFragment, policyNFT); err != nil {
		return "", err
	}
	if err := d.deny(ctx, "shell-1"); err != nil {
		return "", err
	}
	return d.blockedNow(ctx, "shell-1")
}

func (d *demo) patchPolicy(ctx context.Context) (string, error) {
	if err := errors.Join(d.deny(ctx, "shell-2"), d.allow(ctx, "shell-1")); err != nil {
		return "", err
	}
	return d.blockedNow(ctx, "shell-2")
}

// blockedNow asks web from both shells, and checks that only the named ones are dropped. A
// patch takes effect before it is acknowledged, so the first observation counts.
func (d *demo) blockedNow(ctx context.Context, dropped ...string) (string, error) {
	var out []string
	var errs []error
	for _, shell := range []string{"shell-1", "shell-2"} {
		got, err := d.cluster.pod(shell).blocked(ctx, "tcp", netip.AddrPortFrom(webVIP.V4, webPort))
		want := slices.Contains(dropped, shell)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", shell, err))
		case got != want:
			errs = append(errs, fmt.Errorf("%s: dropped is %t, should be %t", shell, got, want))
		case got:
			out = append(out, shell+" is dropped")
		default:
			out = append(out, shell+" gets through")
		}
	}
	return strings.Join(out, ", "), errors.Join(errs...)
}
