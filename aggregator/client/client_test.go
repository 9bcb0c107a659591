package client_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
)

var demo = nft.TableID{Family: nft.FamilyIP, Name: "demo"}

// publisher is a program with one set that it wants the aggregator to have.
type publisher struct {
	mu        sync.Mutex
	want      map[string]bool
	snapshots int
	synced    []error
}

func newPublisher(keys ...string) *publisher {
	p := &publisher{want: map[string]bool{}}
	for _, k := range keys {
		p.want[k] = true
	}
	return p
}

// fragment is the fragment as it is wanted now.
func (p *publisher) fragment(name string) *weftv1.Fragment {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.snapshots++
	s := &weftv1.Set{Name: "blocked", Type: "ipv4_addr"}
	for k := range p.want {
		s.Elements = append(s.Elements, &weftv1.Element{Key: k})
	}
	return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Sets: []*weftv1.Set{s}}}}
}

// change changes what is wanted and returns the patch.
func (p *publisher) change(name, add, remove string) *weftv1.Patch {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &weftv1.ElementPatch{Set: "blocked"}
	if add != "" {
		p.want[add] = true
		e.Add = []*weftv1.Element{{Key: add}}
	}
	if remove != "" {
		delete(p.want, remove)
		e.Remove = []string{remove}
	}
	return &weftv1.Patch{Fragment: name, Tables: []*weftv1.TablePatch{{Family: "ip", Name: "demo", Elements: []*weftv1.ElementPatch{e}}}}
}

func (p *publisher) config() client.SessionConfig {
	return client.SessionConfig{Snapshot: p.fragment, OnSync: func(_ string, _ uint64, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.synced = append(p.synced, err)
	}}
}

func (p *publisher) keys() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []string{}
	for k := range p.want {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (p *publisher) syncs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.synced)
}

func startSession(t *testing.T, c *client.Client, cfg client.SessionConfig) *client.Session {
	t.Helper()
	s := c.Session(cfg)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestDialErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	for path, text := range map[string]string{
		filepath.Join(dir, "none.sock"): "there is no such socket",
		stale:                           "nothing listens",
		file:                            "nothing listens",
		"/run/" + strings.Repeat("x", 99) + strings.Repeat("y", 99): "107 bytes",
	} {
		_, err := client.Dial(aggregatortest.Context(t), client.Config{Socket: path, DialTimeout: 20 * time.Millisecond})
		if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v: want %q", path, err, text)
		}
	}
}

func TestDialWaitsForTheAggregator(t *testing.T) {
	socket := aggregatortest.Socket(t)
	dialed := make(chan error, 1)
	go func() {
		c, err := client.Dial(aggregatortest.Context(t), client.Config{Socket: socket, DialTimeout: aggregatortest.Wait})
		if err == nil {
			err = c.Close()
		}
		dialed <- err
	}()
	aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}, Socket: socket})
	if err := <-dialed; err != nil {
		t.Fatal(err)
	}
}

// TestReconnectResyncs stops the daemon under a session, and lets it come back
// with the old state, and with none.
func TestReconnectResyncs(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("kernel lost=%v", lost), func(t *testing.T) {
			k := &aggregatortest.Kernel{}
			socket, dir := aggregatortest.Socket(t), t.TempDir()
			ctx := aggregatortest.Context(t)
			run := func() *aggregatortest.Daemon {
				return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}, Socket: socket})
			}
			d := run()
			p := newPublisher("10.0.0.1", "10.0.0.2")
			s := startSession(t, d.Dial(t, "tester"), p.config())
			if _, err := s.Put(ctx, p.fragment("list")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Patch(ctx, p.change("list", "10.0.0.3", "10.0.0.1")); err != nil {
				t.Fatal(err)
			}
			if err := d.Stop(); err != nil {
				t.Fatal(err)
			}
			if lost {
				k.Flush()
			}
			// While there is no aggregator, and while it comes back.
			pending := []*client.Pending{
				s.StartPatch(p.change("list", "10.0.0.4", "")),
				s.StartPatch(p.change("list", "10.0.0.5", "10.0.0.2")),
			}
			commits := len(k.Commits())
			run()
			pending = append(pending, s.StartPatch(p.change("list", "", "10.0.0.3")))
			for i, w := range pending {
				if _, err := w.Wait(ctx); err != nil {
					t.Fatalf("update %d: %v", i, err)
				}
			}
			if got := k.Elements(demo, "blocked"); !slices.Equal(got, p.keys()) {
				t.Fatalf("elements %v: want %v", got, p.keys())
			}
			if n := len(k.Commits()) - commits; n > 2 {
				t.Fatalf("%d commits after the restart", n)
			}
			if p.syncs() == 0 {
				t.Fatal("OnSync was not called")
			}
		})
	}
}

// TestRejectedPatchIsFollowedBySnapshot has a patch refused: the next one must
// bring everything that the publisher wants.
func TestRejectedPatchIsFollowedBySnapshot(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	p := newPublisher("10.0.0.1")
	s := startSession(t, d.Dial(t, "tester"), p.config())
	if _, err := s.Put(ctx, p.fragment("list")); err != nil {
		t.Fatal(err)
	}
	bad := p.change("list", "10.0.0.2", "")
	bad.Tables[0].Elements[0].Add = append(bad.Tables[0].Elements[0].Add, &weftv1.Element{Key: "nonsense"})
	var rejected *client.RejectedError
	if _, err := s.Patch(ctx, bad); !errors.As(err, &rejected) {
		t.Fatalf("bad patch: %v", err)
	}
	before := p.snapshots
	if _, err := s.Patch(ctx, p.change("list", "10.0.0.3", "")); err != nil {
		t.Fatal(err)
	}
	if p.snapshots != before+1 {
		t.Fatal("the patch did not travel as a snapshot")
	}
	if got := k.Elements(demo, "blocked"); !slices.Equal(got, p.keys()) {
		t.Fatalf("elements %v: want %v", got, p.keys())
	}
}

// TestSnapshotIsSentWhenAsked has the fragment replaced behind the session's
// back: the aggregator asks for a snapshot, and the caller does not notice.
func TestSnapshotIsSentWhenAsked(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	p := newPublisher("10.0.0.1")
	c := d.Dial(t, "tester")
	s := startSession(t, c, p.config())
	if _, err := s.Put(ctx, p.fragment("list")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(ctx, newPublisher("10.9.9.9").fragment("list")); err != nil {
		t.Fatal(err)
	}
	var pending []*client.Pending
	for i := range 20 {
		pending = append(pending, s.StartPatch(p.change("list", fmt.Sprintf("10.0.1.%d", i), "")))
	}
	for _, w := range pending {
		if _, err := w.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := k.Elements(demo, "blocked"); !slices.Equal(got, p.keys()) {
		t.Fatalf("elements %v: want %v", got, p.keys())
	}
}

// TestTwoSessionsDoNotFight runs the same publisher twice: the later one has
// the fragment, and the earlier one is told.
func TestTwoSessionsDoNotFight(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	first, second := newPublisher("10.0.0.1"), newPublisher("10.0.0.2")
	c := d.Dial(t, "tester")
	a, b := startSession(t, c, first.config()), startSession(t, c, second.config())
	if _, err := a.Put(ctx, first.fragment("list")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, second.fragment("list")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var rejected *client.RejectedError
		if _, err := a.Patch(ctx, first.change("list", "10.0.0.3", "")); !errors.As(err, &rejected) || !rejected.Has(weftv1.Violation_REASON_TAKEN_OVER) {
			t.Fatalf("patch of a fragment that was taken over: %v", err)
		}
	}
	if got := k.Elements(demo, "blocked"); !slices.Equal(got, second.keys()) {
		t.Fatalf("elements %v: want %v", got, second.keys())
	}
}

func TestSessionMisuse(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	ctx := aggregatortest.Context(t)
	p := newPublisher("10.0.0.1")
	s := startSession(t, d.Dial(t, "tester"), p.config())
	if _, err := s.Patch(ctx, p.change("list", "10.0.0.2", "")); !errors.Is(err, client.ErrNoSnapshot) {
		t.Errorf("patch before put: %v", err)
	}
	keeping := startSession(t, d.Dial(t, "keeper"), client.SessionConfig{})
	if _, err := keeping.Put(ctx, p.fragment("list")); err != nil {
		t.Errorf("put: %v", err)
	}
	if _, err := keeping.Patch(ctx, p.change("list", "10.0.0.2", "")); !errors.Is(err, client.ErrNoSnapshot) {
		t.Errorf("patch without Snapshot: %v", err)
	}
	if _, err := keeping.Withdraw(ctx, "list"); err != nil {
		t.Errorf("withdraw: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, p.fragment("list")); !errors.Is(err, client.ErrClosed) {
		t.Errorf("put after close: %v", err)
	}
	bad := startSession(t, d.Dial(t, "Not-A-Name"), p.config())
	if _, err := bad.Put(ctx, p.fragment("list")); err == nil || !strings.Contains(err.Error(), "publisher name") {
		t.Errorf("bad publisher name: %v", err)
	}
}

// TestLargeApply applies a fragment that no single message holds.
func TestLargeApply(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	p := newPublisher()
	for i := range 30_000 {
		p.want[fmt.Sprintf("10.0.%d.%d", i>>8, i&255)] = true
	}
	c := d.Dial(t, "tester")
	applied, err := c.Apply(ctx, p.fragment("list"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(k.Elements(demo, "blocked")); n != 30_000 {
		t.Fatalf("%d elements", n)
	}
	// Its elements were staged in several commits. The last one has all of it.
	if list, err := c.List(ctx); err != nil || list.GetRevision() != applied || len(k.Commits()) < 2 {
		t.Fatalf("applied with revision %d in %d commits; the list has %v, error %v", applied, len(k.Commits()), list, err)
	}
	p.want["nonsense"] = true
	var rejected *client.RejectedError
	if _, err := c.Apply(ctx, p.fragment("list")); !errors.As(err, &rejected) {
		t.Fatalf("bad fragment: %v", err)
	}
}
