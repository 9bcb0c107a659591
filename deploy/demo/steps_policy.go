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

// agent publishes a deny list.
type agent struct{ *process }

// publish waits for the commit.
func (a *agent) publish(ctx context.Context, format string, args ...any) error {
	if _, err := fmt.Fprintf(a.in, format+"\n", args...); err != nil {
		return fmt.Errorf("send to policy process: %w%s", err, a.tail())
	}
	return a.expect(ctx, `"revision"`)
}

func (a *agent) deny(ctx context.Context, p *pod) error {
	return a.patchSet(ctx, fmt.Sprintf(`"add": [{"key": %q}]`, p.V4))
}

func (a *agent) allow(ctx context.Context, p *pod) error {
	return a.patchSet(ctx, fmt.Sprintf(`"remove": [%q]`, p.V4))
}

func (a *agent) patchSet(ctx context.Context, change string) error {
	return a.publish(ctx, `{"patch": {"fragment": %q, "tables": [{"family": "ip", "name": %q, "elements": [{"set": %q, %s}]}]}}`,
		policyFragment, policyTable, policySet, change)
}

func (d *demo) publishPolicy(ctx context.Context) (string, error) {
	node := d.cluster.nodes[0]
	if _, err := d.reachService(ctx); err != nil {
		return "before the policy", err
	}
	p, err := start(node.Namespace, d.dir, "policy", "publish", "--stdin", "--publisher", policyPublisher, "--socket", node.weft.socket)
	if err != nil {
		return "", err
	}
	d.policy = &agent{p}
	if err := d.policy.publish(ctx, `{"snapshot": {"name": %q, "nft": %q}}`, policyFragment, policyNFT); err != nil {
		return "", err
	}
	if err := d.policy.deny(ctx, d.cluster.pod("shell-1")); err != nil {
		return "", err
	}
	return d.reachService(ctx, "shell-1")
}

func (d *demo) patchPolicy(ctx context.Context) (string, error) {
	if err := errors.Join(d.policy.deny(ctx, d.cluster.pod("shell-2")), d.policy.allow(ctx, d.cluster.pod("shell-1"))); err != nil {
		return "", err
	}
	return d.reachService(ctx, "shell-2")
}
