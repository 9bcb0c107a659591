package migration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// host is a node without a cluster; its weft reads Services from files.
type host struct {
	// unclaimed is true if the state directory is new or of another version, so that tables may have
	// unrecorded contents.
	unclaimed bool
	t         *testing.T
	ctx       context.Context
	node      *lab.Namespace
	dir       string
	starts    int
	weft      *lab.Process
}

func newHost(t *testing.T) *host {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	n, err := lab.NewNamespace("host")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, ctx: ctx, node: n, dir: t.TempDir()}
	t.Cleanup(func() {
		if h.weft != nil {
			if t.Failed() {
				t.Logf("--- %s\n%s", h.weft.Name, h.weft.Tail(40))
			}
			_ = h.weft.Kill()
		}
		cancel()
		_ = n.Close()
	})
	return h
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

func (h *host) launch(v version, flags ...string) {
	h.t.Helper()
	h.starts++
	argv := append([]string{
		program(string(v)), "run", "--manifests", "../../examples/manifests", "--hostname-override", "node-a", "--cluster-cidr", "10.244.0.0/16,fd00:10:244::/56",
		"--socket", h.path("weft.sock"), "--state-dir", h.path("state"), "--metrics-bind-address=", "--healthz-bind-address=127.0.0.1:10256", "--ready-grace=1s",
		// For a line per published update.
		"--log-level=debug",
	}, flags...)
	var err error
	if h.weft, err = h.node.Start(string(v), h.path(fmt.Sprintf("log.%d", h.starts)), nil, argv...); err != nil {
		h.t.Fatal(err)
	}
}

// start waits until weft's rules are in force.
func (h *host) start(v version, flags ...string) {
	h.t.Helper()
	h.launch(v, flags...)
	h.eventually(func() error {
		if err := h.weft.Err(); err != nil {
			h.t.Fatal(err)
		}
		log := h.weft.Tail(1000)
		if !strings.Contains(log, "msg=published component=services") {
			return fmt.Errorf("%s has not published the Services", v)
		}
		_, err := h.node.Dial(h.ctx, "tcp", "127.0.0.1:10256")
		return err
	})
	for line := range strings.SplitSeq(h.weft.Tail(1000), "\n") {
		expected := h.unclaimed && (strings.Contains(line, "no record") || strings.Contains(line, "format of another version of weft"))
		if (strings.Contains(line, "level=ERROR") || strings.Contains(line, "no record")) && !expected {
			h.t.Errorf("%s: %s", v, line)
		}
	}
}

func (h *host) eventually(f func() error) {
	h.t.Helper()
	if err := lab.Within(h.ctx, time.Minute, f); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) stop() {
	h.t.Helper()
	if err := h.weft.Stop(time.Minute); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) run(v version, args ...string) string {
	h.t.Helper()
	out, err := h.node.Run(h.ctx, program(string(v)), append(args, "--socket", h.path("weft.sock"))...)
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h *host) write(name, text string) string {
	h.t.Helper()
	if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return h.path(name)
}

// apply publishes rules with a version of weft, as a file with a name.
func (h *host) apply(v version, name, rules string, flags ...string) {
	h.t.Helper()
	h.run(v, append([]string{"apply", "-f", h.write(name+".nft", rules)}, flags...)...)
}

// table lists handles of rules, but not the owner.
func (h *host) table(name string) string {
	h.t.Helper()
	out, err := h.node.Run(h.ctx, "nft", "-a", "list", "table", "inet", name)
	if err != nil {
		h.t.Fatal(err)
	}
	return ownerless(out)
}

// list is a table with these elements, and a rule that reads them.
func list(name string, elements ...string) string {
	return fmt.Sprintf("table inet %s {\n\tset blocked { type ipv4_addr; elements = { %s }; }\n\tchain input { type filter hook input priority filter; ip saddr @blocked drop comment %q; }\n}\n",
		name, strings.Join(elements, ", "), name)
}

// monitored returns f's changes of the ruleset from nft monitor.
func (h *host) monitored(f func()) []string {
	h.t.Helper()
	log := h.path("monitor")
	_ = os.Remove(log)
	m, err := h.node.Start("monitor", log, nil, "nft", "monitor")
	if err != nil {
		h.t.Fatal(err)
	}
	// seen adds a table and waits for its event, after all earlier events.
	seen := func(mark string) {
		h.eventually(func() error {
			for _, verb := range []string{"add", "delete"} {
				if _, err := h.node.Run(h.ctx, "nft", verb, "table", "inet", mark); err != nil {
					return err
				}
			}
			if !strings.Contains(m.Tail(1<<20), "delete table inet "+mark) {
				return fmt.Errorf("nft monitor does not show table %s", mark)
			}
			return nil
		})
	}
	seen("mark-begin")
	f()
	seen("mark-end")
	if err := m.Kill(); err != nil {
		h.t.Fatal(err)
	}
	var changes []string
	for line := range strings.SplitSeq(m.Tail(1<<20), "\n") {
		if line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "#") && !strings.Contains(line, " mark-") {
			changes = append(changes, strings.TrimSpace(line))
		}
	}
	return changes
}
