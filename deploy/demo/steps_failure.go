package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func (d *demo) runNft(ctx context.Context, n *node, args ...string) (string, error) {
	if d.nft == "" {
		return "", &skipped{"nft(8) is not installed: it acts as the other program"}
	}
	var out, errOut bytes.Buffer
	err := n.Do(func() error {
		cmd := exec.CommandContext(ctx, d.nft, args...)
		cmd.Env = append(cmd.Environ(), "LC_ALL=C")
		cmd.Stdout, cmd.Stderr = &out, &errOut
		return cmd.Run()
	})
	if err != nil {
		return "", fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

func (d *demo) refuseOthers(ctx context.Context) (string, error) {
	n := d.cluster.nodes[0]
	rules, err := n.stable(ctx)
	if err != nil {
		return "", err
	}
	if !rules.owner {
		return "", &skipped{"this kernel has no table owners (Linux 6.9): others can write, and weft repairs"}
	}
	var out []string
	for _, command := range []string{
		"add chain ip weft intruder",
		"delete table ip weft",
		"flush table ip weft",
		"add element ip " + policyTable + " " + policySet + " { 192.0.2.99 }",
		"delete table ip6 weft",
	} {
		_, err := d.runNft(ctx, n, strings.Fields(command)...)
		if err == nil {
			err = fmt.Errorf("nft %s was not refused", command)
		}
		if !strings.Contains(err.Error(), "Operation not permitted") {
			return "", err
		}
		out = append(out, strings.Join(strings.Fields(command)[:2], " "))
	}
	after, err := n.readRuleset()
	if err != nil {
		return "", err
	}
	return "nft " + strings.Join(out, ", ") + ": each gets operation not permitted", rules.same(after)
}

func (d *demo) undisturbed(ctx context.Context, f func() error) (string, error) {
	app, n := d.cluster.pod("app"), d.cluster.nodes[0]
	before, err := d.stream.check()
	if err != nil {
		return "", err
	}
	newFlows := startNewFlows(ctx,
		target{app.space, "tcp", webTCP},
		target{app.space, "udp", webUDP},
		target{d.cluster.client, "tcp", netip.AddrPortFrom(n.V4, webNodePort)},
	)
	const pause = 400 * time.Millisecond
	cli.Pause(ctx, pause)
	err = f()
	cli.Pause(ctx, pause)
	newFlows.stop()
	flows, flowErr := newFlows.check()
	after, streamErr := d.stream.check()
	observed := fmt.Sprintf("all %d new flows are answered; %d more bytes over the TCP connection", flows, after-before)
	if flowErr != nil {
		observed = fmt.Sprintf("%d new flows answered", flows)
	}
	return observed, errors.Join(err, flowErr, streamErr)
}

// repairTimeout bounds the outage after another program has removed weft's tables.
const repairTimeout = 5 * time.Second

func (d *demo) foreignFlush(ctx context.Context) (string, error) {
	n := d.cluster.nodes[0]
	rules, err := n.readRuleset()
	if err != nil {
		return "", err
	}
	flush := func() error {
		_, err := d.runNft(ctx, n, "flush", "ruleset")
		return err
	}
	if rules.owner {
		return d.undisturbed(ctx, flush)
	}
	if err := flush(); err != nil {
		return "", err
	}
	began := time.Now()
	err = await(ctx, repairTimeout, func(ctx context.Context) error {
		// Packets before the repair are lost, and TCP retransmits after a second.
		_, err := d.cluster.pod("app").askWithin(ctx, repairTimeout/10, "tcp", webTCP)
		return err
	})
	observed := fmt.Sprintf("no table owners on this kernel: repaired after %s", time.Since(began).Round(time.Millisecond))
	if err != nil {
		return observed, err
	}
	// Without rules, existing connections are not translated, so that an active connection may be
	// reset.
	if _, err := d.stream.check(); err == nil {
		return observed + "; the TCP connection stays up", nil
	}
	d.stream.stop()
	d.stream, err = startStream(ctx, d.cluster.pod("app").space, webTCP)
	return observed + "; the TCP connection broke meanwhile, and is made again", err
}

func (d *demo) killWeft(ctx context.Context) (string, error) {
	n := d.cluster.nodes[0]
	var err error
	if d.before, err = n.stable(ctx); err != nil {
		return "", err
	}
	return d.undisturbed(ctx, func() error {
		n.weft.kill()
		return nil
	})
}

func (d *demo) restartWeft(ctx context.Context) (string, error) {
	n := d.cluster.nodes[0]
	var after ruleset
	observed, err := d.undisturbed(ctx, func() error {
		if err := d.startWeft(ctx, n); err != nil {
			return err
		}
		if err := n.weft.ready(ctx); err != nil {
			return err
		}
		var err error
		after, err = n.stable(ctx)
		return err
	})
	if err != nil {
		return observed, err
	}
	rules, elements := after.size()
	changes := after.generation - d.before.generation
	observed = fmt.Sprintf("%d rules and %d elements are the same, commits: %d; %s", rules, elements, changes, observed)
	if err := d.before.same(after); err != nil {
		return "", err
	}
	if changes > 1 {
		return observed, fmt.Errorf("%d commits, where the takeover is one", changes)
	}
	return observed, nil
}

func (d *demo) afterRestart(ctx context.Context) (string, error) {
	if err := d.policy.deny(ctx, d.cluster.pod("shell-1")); err != nil {
		return "", err
	}
	if _, err := d.reachService(ctx, "shell-1", "shell-2"); err != nil {
		return "", err
	}
	removed := d.manifests.removed
	if err := d.manifests.setWeb(""); err != nil {
		return "", err
	}
	began := time.Now()
	err := await(ctx, 3*time.Second, func(ctx context.Context) error {
		a, err := d.cluster.pod("app").ask(ctx, "tcp", webTCP)
		if err == nil && a.pod != removed {
			err = fmt.Errorf("%s answers", a.pod)
		}
		return err
	})
	return fmt.Sprintf("%s answers after %s; both shells are dropped now", removed, time.Since(began).Round(time.Millisecond)), err
}

func (d *demo) streamAtEnd(context.Context) (string, error) {
	n, err := d.stream.check()
	return fmt.Sprintf("%d bytes went to %s and came back as they were", n, d.stream.pod), err
}

func (d *demo) printRuleset(ctx context.Context) {
	n := d.cluster.nodes[0]
	text, err := d.runNft(ctx, n, "list", "ruleset")
	if err != nil {
		text = err.Error()
	}
	fmt.Fprintf(d.out, "nft list ruleset, on %s:\n\n%s\n", n.Name, text)
}
