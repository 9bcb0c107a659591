package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// command sends the policy process a command and waits for its commit.
func (d *demo) command(ctx context.Context, format string, args ...any) error {
	if d.policy == nil {
		return errors.New("there is no policy process")
	}
	if _, err := io.WriteString(d.policy.in, fmt.Sprintf(format, args...)+"\n"); err != nil {
		return fmt.Errorf("command policy process: %w%s", err, d.policy.tail())
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return d.policy.expect(ctx, "committed")
}

func (d *demo) publishPolicy(ctx context.Context) (string, error) {
	node := d.cluster.nodes[0]
	if err := d.expectBlocked(ctx, map[string]bool{"shell-1": false, "shell-2": false}); err != nil {
		return "before the policy", err
	}
	var err error
	d.policy, err = start(node.namespace, d.dir, "policy", "demo", "publish", "--socket", node.weft.socket)
	if err != nil {
		return "", err
	}
	wait, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := d.policy.expect(wait, "committed"); err != nil {
		return "", err
	}
	if err := d.command(ctx, "deny %s", d.cluster.pod("shell-1").V4); err != nil {
		return "", err
	}
	return d.blockedNow(ctx, "shell-1")
}

func (d *demo) patchPolicy(ctx context.Context) (string, error) {
	if err := errors.Join(
		d.command(ctx, "deny %s", d.cluster.pod("shell-2").V4),
		d.command(ctx, "allow %s", d.cluster.pod("shell-1").V4),
	); err != nil {
		return "", err
	}
	return d.blockedNow(ctx, "shell-2")
}

// blockedNow checks that of the two shells only the named one is blocked, or
// none where the name is empty.
func (d *demo) blockedNow(ctx context.Context, name string) (string, error) {
	want := map[string]bool{"shell-1": name == "shell-1", "shell-2": name == "shell-2"}
	if err := d.expectBlocked(ctx, want); err != nil {
		return "", err
	}
	var out []string
	for _, shell := range []string{"shell-1", "shell-2"} {
		state := "gets through"
		if want[shell] {
			state = "is dropped"
		}
		out = append(out, shell+" "+state)
	}
	return strings.Join(out, ", "), nil
}

// expectBlocked asks web from each pod. A patch takes effect before it is
// acknowledged, so what is seen first counts.
func (d *demo) expectBlocked(ctx context.Context, want map[string]bool) error {
	var errs []error
	for _, shell := range []string{"shell-1", "shell-2"} {
		got, err := d.cluster.pod(shell).blocked(ctx, "tcp", netip.AddrPortFrom(webVIP.V4, webPort))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", shell, err))
		case got != want[shell]:
			errs = append(errs, fmt.Errorf("%s: dropped is %t, should be %t", shell, got, want[shell]))
		}
	}
	return errors.Join(errs...)
}
