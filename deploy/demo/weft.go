package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/nft/kernel"
)

type weft struct {
	*process
	socket string
	client *client.Client
}

// startWeft reuses the state and the socket of an earlier weft.
func (d *demo) startWeft(ctx context.Context, n *node) error {
	w := &weft{socket: filepath.Join(d.dir, n.Name+".sock")}
	var err error
	w.process, err = start(n.Namespace, d.dir, "weft-"+n.Name, "run",
		"--manifests", filepath.Join(d.dir, "manifests"),
		"--hostname-override", n.Name,
		"--cluster-cidr", clusterCIDR+","+clusterCIDR6,
		"--network-policy",
		"--socket", w.socket,
		"--state-dir", filepath.Join(d.dir, n.Name),
		"--metrics-bind-address", "",
		"--healthz-bind-address", "",
	)
	if err != nil {
		return err
	}
	n.weft = w
	return w.await(ctx, "accept a connection", func(ctx context.Context) (err error) {
		w.client, err = client.Dial(ctx, client.Config{Socket: w.socket, Publisher: "demo", DialTimeout: -1})
		return err
	})
}

func (w *weft) await(ctx context.Context, what string, condition func(context.Context) error) error {
	err := await(ctx, readyTimeout, func(ctx context.Context) error {
		if err := w.running(); err != nil {
			return &final{err}
		}
		return condition(ctx)
	})
	if err != nil {
		return fmt.Errorf("wait for %s to %s: %w%s", w.name, what, err, w.tail())
	}
	return nil
}

const readyTimeout = 10 * time.Second

// ready waits until all fragments are committed, including both frontends'.
func (w *weft) ready(ctx context.Context) error {
	return w.await(ctx, "commit its fragments", func(ctx context.Context) error {
		list, err := w.client.List(ctx)
		if err != nil {
			return err
		}
		missing := map[string]bool{services.Publisher: true, policy.Publisher: true}
		for _, f := range list.GetFragments() {
			delete(missing, f.GetFragment().GetPublisher())
			if f.GetState() != weftv1.FragmentStatus_STATE_COMMITTED {
				return fmt.Errorf("fragment %s is %s", f.GetFragment().Text(), f.GetState())
			}
		}
		for name := range missing {
			return fmt.Errorf("%s has not published a fragment", name)
		}
		return nil
	})
}

func (w *weft) stop() {
	if w.client != nil {
		_ = w.client.Close()
	}
	w.process.stop()
}

func (w *weft) kill() {
	_ = w.client.Close()
	w.process.kill()
}

type ruleset struct {
	tables []kernel.Table
	// the number of the last change by any program
	generation uint32
	// the kernel supports owners of tables
	owner bool
}

func (n *node) readRuleset() (ruleset, error) {
	return n.readWhen(func(*kernel.Conn) error { return nil })
}

func (n *node) readWhen(wait func(*kernel.Conn) error) (out ruleset, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read ruleset of %s: %w", n.Name, err)
		}
	}()
	conn, err := kernel.Open(kernel.Config{NetNS: n.FD()})
	if err != nil {
		return out, err
	}
	defer func() { _ = conn.Close() }()
	if err := wait(conn); err != nil {
		return out, err
	}
	out.owner = conn.Owner()
	if out.tables, err = conn.Dump(); err != nil {
		return out, err
	}
	out.generation, err = conn.Generation()
	return out, err
}

// stableTime is longer than the second after which weft removes unused objects.
const stableTime = 1500 * time.Millisecond

func (n *node) stable(ctx context.Context) (ruleset, error) {
	return n.readWhen(func(conn *kernel.Conn) error {
		var last uint32
		var since time.Time
		return await(ctx, readyTimeout, func(context.Context) error {
			now, err := conn.Generation()
			if err != nil {
				return &final{err}
			}
			if since.IsZero() || now != last {
				last, since = now, time.Now()
			}
			if quiet := time.Since(since); quiet < stableTime {
				return fmt.Errorf("it changed %s ago", quiet.Round(time.Millisecond))
			}
			return nil
		})
	})
}

// rechecked has addresses with connections that the NetworkPolicy frontend checks again after a change,
// and then removes.
const rechecked = "recheck"

func (r ruleset) text() []byte {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, t := range r.tables {
		add("table %s", t.ID)
		for _, c := range t.Chains {
			add("table %s chain %s %+v", t.ID, c.Decl.Name, c.Decl.Base)
			for i, rule := range c.Rules {
				add("table %s chain %s rule %d, handle %d, content %x", t.ID, c.Decl.Name, i+1, rule.Handle.N, rule.Info.Fingerprint)
			}
		}
		for _, s := range t.Sets {
			add("table %s set %s", t.ID, s.Decl.Name)
			if s.Decl.Name == rechecked {
				continue
			}
			for _, e := range s.Elements {
				add("table %s set %s element %x-%x : %x %q", t.ID, s.Decl.Name, e.Key, e.KeyEnd, e.Data, e.Comment)
			}
		}
	}
	slices.Sort(out)
	return []byte(strings.Join(out, "\n"))
}

func (r ruleset) same(after ruleset) error {
	if d := diff.Diff("before", r.text(), "after", after.text()); d != nil {
		return fmt.Errorf("the ruleset is not what it was:\n%s", d)
	}
	return nil
}

func (r ruleset) size() (rules, elements int) {
	for _, t := range r.tables {
		for _, c := range t.Chains {
			rules += len(c.Rules)
		}
		for _, s := range t.Sets {
			elements += len(s.Elements)
		}
	}
	return rules, elements
}
