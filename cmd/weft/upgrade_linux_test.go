package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// patience bounds every wait of these tests.
const patience = 3 * time.Minute

// inOwnNamespace runs the calling test again, in a process in a fresh network
// namespace and with further flags; true means that this is that process.
func inOwnNamespace(t *testing.T, flags ...string) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	flags = append(flags, "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1", "-test.timeout=0")
	cmd := exec.CommandContext(t.Context(), os.Args[0], flags...) //nolint:gosec // itself
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a namespace of its own: %v", err)
	}
	return false
}

// logged collects a process's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// weft is a daemon in a process of its own.
type weft struct {
	cmd  *exec.Cmd
	log  logged
	done chan error
}

func startWeft(t *testing.T, args ...string) *weft {
	t.Helper()
	w := &weft{done: make(chan error, 1)}
	w.cmd = exec.CommandContext(t.Context(), os.Args[0])
	// TestMain goes by the name.
	w.cmd.Args = append([]string{"weft"}, args...)
	w.cmd.Stderr = &w.log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { w.done <- w.cmd.Wait() }()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("log of process %d:\n%s", w.cmd.Process.Pid, w.log.String())
		}
	})
	return w
}

// says waits for a line of the log.
func (w *weft) says(t *testing.T, what string) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d says %q", w.cmd.Process.Pid, what), func() bool { return strings.Contains(w.log.String(), what) })
}

// end sends a signal, and waits for the end of the process.
func (w *weft) end(t *testing.T, s syscall.Signal) error {
	t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-w.done:
		return err
	case <-time.After(patience):
		t.Fatalf("process %d does not end after %v", w.cmd.Process.Pid, s)
		return nil
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after %v: %s", patience, what)
		}
	}
}

// grower is a publisher whose fragment gets one more element with each update.
type grower struct {
	name string

	mu sync.Mutex
	// issued is what it wants, acked what it was told to be committed.
	issued, acked []string
}

func (p *grower) fragment() *weftv1.Fragment {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := &weftv1.Set{Name: "members", Type: "ipv4_addr"}
	for _, k := range p.issued {
		set.Elements = append(set.Elements, &weftv1.Element{Key: k})
	}
	return &weftv1.Fragment{Name: "list", Tables: []*weftv1.Table{{Family: "ip", Name: p.name, Sets: []*weftv1.Set{set}}}}
}

// grow issues the next element.
func (p *grower) grow() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.issued)
	p.issued = append(p.issued, fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255))
	return p.issued[n]
}

func (p *grower) ack(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked = append(p.acked, key)
}

// told returns what was acknowledged up to now.
func (p *grower) told() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.acked)
}

// stream patches over a session until ctx ends. Nothing is tried again: that is
// the session's business.
func (p *grower) stream(ctx context.Context, c *client.Client) error {
	s := c.Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return p.fragment() }})
	defer func() { _ = s.Close() }()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := s.Put(wait, p.fragment()); err != nil {
		return err
	}
	for ctx.Err() == nil {
		key := p.grow()
		_, err := s.Patch(wait, &weftv1.Patch{Fragment: "list", Tables: []*weftv1.TablePatch{{
			Family: "ip", Name: p.name, Elements: []*weftv1.ElementPatch{{Set: "members", Add: []*weftv1.Element{{Key: key}}}},
		}}})
		if err != nil {
			return fmt.Errorf("%s: patch: %w", p.name, err)
		}
		p.ack(key)
	}
	return nil
}

// apply applies the whole fragment until ctx ends, and again if there is no answer.
func (p *grower) apply(ctx context.Context, c *client.Client) error {
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for ctx.Err() == nil {
		key := p.grow()
		for {
			_, err := c.Apply(wait, p.fragment())
			if err == nil {
				break
			}
			if !errors.Is(err, client.ErrUnavailable) {
				return fmt.Errorf("%s: apply: %w", p.name, err)
			}
		}
		p.ack(key)
	}
	return nil
}

// members returns the elements of all tables in the kernel, by table. It fails
// with kernel.ErrBusy where commits are too many for a dump.
func members(conn *kernel.Conn) (map[string]map[string]bool, error) {
	dump, err := conn.Dump()
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]bool{}
	for _, table := range dump {
		out[table.ID.Name] = map[string]bool{}
		for _, s := range table.Sets {
			for _, e := range s.Elements {
				out[table.ID.Name][s.Decl.FormatKey(e)] = true
			}
		}
	}
	return out, nil
}

// TestUpgradeUnderLoad replaces the binary twice while publishers send: first the
// old one is stopped, then the next one is killed. The kernel is read all the
// time: it has whatever was acknowledged before.
func TestUpgradeUnderLoad(t *testing.T) {
	if !inOwnNamespace(t) {
		return
	}
	dir, err := os.MkdirTemp("", "weft")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "weft.sock")
	args := []string{
		"aggregator", "--standby", "--socket", socket, "--state-dir", filepath.Join(dir, "state"),
		"--metrics-bind-address=", "--healthz-bind-address=", "--commit-rate=0",
	}
	first := startWeft(t, args...)
	first.says(t, "adopted tables")

	ctx, cancel := context.WithCancel(t.Context())
	growers := []*grower{{name: "one"}, {name: "two"}, {name: "unary"}}
	failed := make(chan error, len(growers))
	var wg sync.WaitGroup
	for _, p := range growers {
		c, err := client.Dial(ctx, client.Config{Socket: socket, Publisher: p.name, DialTimeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		send := p.stream
		if p.name == "unary" {
			send = p.apply
		}
		wg.Go(func() { failed <- send(ctx, c) })
	}
	conn, err := kernel.Open(kernel.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	// progress waits until all have n more acknowledgements than at the call, and
	// meanwhile looks at the kernel.
	progress := func(n int) {
		t.Helper()
		goal := map[string]int{}
		for _, p := range growers {
			goal[p.name] = len(p.told()) + n
		}
		eventually(t, "all publishers go on", func() bool {
			before := map[string][]string{}
			for _, p := range growers {
				before[p.name] = p.told()
			}
			have, err := members(conn)
			if errors.Is(err, kernel.ErrBusy) {
				return false
			}
			if err != nil {
				t.Fatal(err)
			}
			on := true
			for _, p := range growers {
				for _, key := range before[p.name] {
					if !have[p.name][key] {
						t.Fatalf("%s: element %s was acknowledged and is not in the kernel", p.name, key)
					}
				}
				on = on && len(before[p.name]) >= goal[p.name]
			}
			return on
		})
	}
	progress(20)

	second := startWeft(t, args...)
	second.says(t, "standing by")
	progress(20)
	began := time.Now()
	if err := first.end(t, syscall.SIGTERM); err != nil {
		t.Fatalf("the first ends with %v", err)
	}
	second.says(t, "adopted tables")
	t.Logf("taken over %v after SIGTERM", time.Since(began))
	progress(20)

	third := startWeft(t, args...)
	third.says(t, "standing by")
	progress(20)
	began = time.Now()
	_ = second.end(t, syscall.SIGKILL)
	third.says(t, "adopted tables")
	t.Logf("taken over %v after SIGKILL", time.Since(began))
	progress(20)

	cancel()
	wg.Wait()
	for range growers {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	have, err := members(conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range growers {
		want, got := slices.Sorted(slices.Values(p.told())), slices.Sorted(maps.Keys(have[p.name]))
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %d elements: want the %d that were acknowledged", p.name, len(got), len(want))
		}
	}
	if strings.Contains(third.log.String(), "removed content without a fragment") {
		t.Fatal("something was withdrawn after the upgrade")
	}
	if err := third.end(t, syscall.SIGTERM); err != nil {
		t.Fatalf("the third ends with %v", err)
	}
}
