package demo

import (
	"context"
	"errors"
	"fmt"
)

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

// publish waits for the commit.
func (d *demo) publish(ctx context.Context, format string, args ...any) error {
	if _, err := fmt.Fprintf(d.policy.in, format+"\n", args...); err != nil {
		return fmt.Errorf("send to policy process: %w%s", err, d.policy.tail())
	}
	return d.policy.expect(ctx, `"revision"`)
}

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
	if _, err := d.reachService(ctx); err != nil {
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
	return d.reachService(ctx, "shell-1")
}

func (d *demo) patchPolicy(ctx context.Context) (string, error) {
	if err := errors.Join(d.deny(ctx, "shell-2"), d.allow(ctx, "shell-1")); err != nil {
		return "", err
	}
	return d.reachService(ctx, "shell-2")
}
