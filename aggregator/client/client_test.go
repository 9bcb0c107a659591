package client_test

import (
	"context"
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

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/nft"
)

// TestPutSendsTheDifference counts the messages of repeated Puts.
func TestPutSendsTheDifference(t *testing.T) {
	f, ctx := newFake(t), aggregatortest.Context(t)
	var snapshots, patches int
	f.behave(nil, func(_ string, req *weftv1.PublishRequest) verdict {
		switch req.GetUpdate().(type) {
		case *weftv1.PublishRequest_Snapshot:
			snapshots++
		case *weftv1.PublishRequest_Patch:
			patches++
		}
		return verdict{}
	})
	s := startSession(t, f.dial(t), client.SessionConfig{})
	var last uint64
	for i, step := range []struct {
		keys               []string
		snapshots, patches int
	}{
		{[]string{"10.0.0.1", "10.0.0.2"}, 1, 0},
		{[]string{"10.0.0.1", "10.0.0.2"}, 1, 0},
		{[]string{"10.0.0.2", "10.0.0.3"}, 1, 1},
		{[]string{"10.0.0.3", "10.0.0.2"}, 1, 1},
		{nil, 1, 2},
	} {
		p := newPublisher(step.keys...)
		revision, err := s.Put(ctx, p.fragment("list"))
		if err != nil || revision < last || !slices.Equal(f.keys("list"), p.keys()) {
			t.Fatalf("step %d: revision %d after %d, %v, keys %v", i, revision, last, err, f.keys("list"))
		}
		f.mu.Lock()
		if snapshots != step.snapshots || patches != step.patches {
			t.Fatalf("step %d: %d snapshots and %d patches were sent: want %+v", i, snapshots, patches, step)
		}
		f.mu.Unlock()
		last = revision
	}
	// A rejected Put has not happened: the next one is the difference from what was
	// committed.
	f.behave(nil, func(string, *weftv1.PublishRequest) verdict { return verdict{reject: weftv1.Violation_REASON_CONFLICT} })
	if _, err := s.Put(ctx, newPublisher("10.0.0.9").fragment("list")); err == nil {
		t.Fatal("the Put was accepted")
	}
	f.behave(nil, nil)
	if _, err := s.Put(ctx, newPublisher("10.0.0.5").fragment("list")); err != nil || !slices.Equal(f.keys("list"), []string{"10.0.0.5"}) {
		t.Fatalf("%v, keys %v", err, f.keys("list"))
	}
}

// TestPutIsWhatTheAggregatorHas puts random lists, with keys in several spellings:
// after each, a plan of the same fragment finds nothing to do.
func TestPutIsWhatTheAggregatorHas(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	s := startSession(t, c, client.SessionConfig{})
	keys := []string{"10.0.0.1", "10.0.0.1/32", "10.0.0.2", "10.0.0.3-10.0.0.3", "10.0.0.3", "10.1.0.0/16", "10.1.0.0-10.1.255.255"}
	rapid.Check(t, func(rt *rapid.T) {
		p := newPublisher(rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID).Draw(rt, "keys")...)
		f := p.fragment("list")
		f.Tables[0].Sets[0].Flags = []string{"interval"}
		if _, err := s.Put(ctx, f); err != nil {
			rt.Fatal(err)
		}
		plan, err := c.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f}})
		if err != nil || len(plan.GetChanges()) > 0 {
			rt.Fatalf("%v: the aggregator has something else: %v", err, plan)
		}
	})
}

// TestPackedAsText: an aggregator without the feature gets text, one with it gets the packed elements.
func TestPackedAsText(t *testing.T) {
	for _, test := range []struct {
		features []string
		want     []string
	}{{nil, []string{"192.0.2.1", "192.0.2.3"}}, {[]string{"packed"}, []string{}}} {
		f := newFake(t)
		f.features = test.features
		var packed int
		f.behave(nil, func(_ string, req *weftv1.PublishRequest) verdict {
			for _, of := range req.GetSnapshot().GetTables() {
				packed += weftv1.CountPacked(of.GetSets()[0].GetPacked())
			}
			for _, of := range req.GetPatch().GetTables() {
				packed += weftv1.CountPacked(of.GetElements()[0].GetAddPacked()) + weftv1.CountPacked(of.GetElements()[0].GetRemovePacked())
			}
			return verdict{}
		})
		of := func(keys ...string) []*weftv1.PackedElements {
			m := &weftv1.PackedElements{Count: uint32(len(keys))}
			for _, k := range keys {
				m.Keys = append(m.Keys, k...)
			}
			return []*weftv1.PackedElements{m}
		}
		fragment := &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "t", Sets: []*weftv1.Set{{
			Name: "s", Type: "ipv4_addr", Packed: of("\xc0\x00\x02\x01", "\xc0\x00\x02\x02"),
		}}}}}
		c, err := client.Dial(aggregatortest.Context(t), client.Quick(client.Config{Socket: f.socket, Publisher: "tester", Text: convert.Text}))
		must(t, err)
		s := c.Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return fragment }})
		must(t, errorOf(s.Put(aggregatortest.Context(t), fragment)))
		if _, err := s.Patch(aggregatortest.Context(t), &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{Family: "ip", Name: "t", Elements: []*weftv1.ElementPatch{{
			Set: "s", RemovePacked: of("\xc0\x00\x02\x02"), AddPacked: of("\xc0\x00\x02\x03"),
		}}}}}); err != nil {
			t.Fatal(err)
		}
		if got, want := f.keys("f"), test.want; !slices.Equal(got, want) || packed > 0 != (test.features != nil) {
			t.Errorf("with features %v the aggregator got keys %v and %d packed elements, want keys %v", test.features, got, packed, want)
		}
		must(t, errorOf(c.Plan(aggregatortest.Context(t), &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{fragment}})))
		set := f.planned.GetFragments()[0].GetTables()[0].GetSets()[0]
		if as := len(set.GetElements()) > 0; as != (test.features == nil) || len(set.GetPacked()) > 0 == as {
			t.Errorf("with features %v the aggregator plans %v", test.features, set)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCallsThatInspect asks an aggregator for what was published.
func TestCallsThatInspect(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	c, ctx := d.Dial(t, "demo"), aggregatortest.Context(t)
	f := newPublisher("10.0.0.1").fragment("list")
	plan, err := c.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f}})
	if err != nil || len(plan.GetChanges()) != 3 || plan.GetChanges()[0].GetFragment().Text() != "demo/list" {
		t.Fatalf("plan is %v, error %v: want a table, a set and an element of demo/list", plan, err)
	}
	must(t, errorOf(c.Apply(ctx, f)))
	for _, publisher := range []string{"demo", "other"} {
		plan, err := d.Dial(t, publisher).Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f}})
		if err != nil || len(plan.GetChanges())+len(plan.GetRejections()) != 0 {
			t.Fatalf("the plan of %s for a share of what is there is %v, error %v", publisher, plan, err)
		}
	}
	if r, err := c.ListTables(ctx); err != nil || len(r.GetTables()) != 1 || r.GetTables()[0].GetElements() != 1 || r.GetRevision() == 0 {
		t.Errorf("tables are %v, error %v", r, err)
	}
	if r, err := c.GetTable(ctx, &weftv1.GetTableRequest{Family: "ip", Name: "demo"}); err != nil || r.GetSets()[0].GetSet().GetElements()[0].GetKey() != "10.0.0.1" {
		t.Errorf("table is %v, error %v", r, err)
	}
	if r, err := c.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse("element ip demo blocked { 10.0.0.1 }")}); err != nil || len(r.GetOwners()) != 1 || r.GetOwners()[0].GetFragment().GetPublisher() != "demo" {
		t.Errorf("owners are %v, error %v", r, err)
	}
	if r, err := c.ListPublishers(ctx); err != nil || len(r.GetPublishers()) != 1 || r.GetPublishers()[0].GetCommitted() != 1 {
		t.Errorf("publishers are %v, error %v", r, err)
	}
	if tables, err := c.Cleanup(ctx); err != nil || !slices.Equal(tables, []string{"ip demo"}) {
		t.Errorf("tables %v are removed, error %v", tables, err)
	}
}

// TestCallsThatFail has what is not there, calls that are given up, and an aggregator without the calls.
func TestCallsThatFail(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	c, ctx := d.Dial(t, "demo"), aggregatortest.Context(t)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	closed := d.Dial(t, "demo")
	_ = closed.Close()
	for _, tt := range []struct {
		c             *client.Client
		ctx           context.Context //nolint:containedctx // of a test's case
		family, table string
		want          error
		text          string
	}{
		{c, ctx, "ip", "none", client.ErrNotFound, "weft has no table ip none"},
		{c, ctx, "ipx", "none", client.ErrInvalid, `unknown family "ipx"`},
		{c, gone, "ip", "none", context.Canceled, ""},
		{closed, ctx, "ip", "none", client.ErrClosed, ""},
		{newFake(t).dial(t), ctx, "ip", "none", errors.ErrUnsupported, ""},
	} {
		_, stream := tt.c.GetTable(tt.ctx, &weftv1.GetTableRequest{Family: tt.family, Name: tt.table})
		_, unary := tt.c.Owner(tt.ctx, &weftv1.OwnerRequest{Object: &weftv1.ObjectName{Kind: "table", Family: tt.family, Table: tt.table}})
		for call, err := range map[string]error{"get table " + tt.family + " " + tt.table + ": ": stream, "find the owner of table " + tt.family: unary} {
			if !errors.Is(err, tt.want) || !strings.HasPrefix(err.Error(), call) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s%v: want %v with %q", call, err, tt.want, tt.text)
			}
		}
	}
	if _, err := c.Owner(ctx, &weftv1.OwnerRequest{}); !errors.Is(err, client.ErrInvalid) || !strings.Contains(err.Error(), "the table has no name") {
		t.Errorf("the owner of nothing: %v", err)
	}
	plan, err := c.Plan(ctx, &weftv1.PlanRequest{Withdraw: []*weftv1.FragmentName{{Publisher: "No!", Name: "x"}}, Fragments: []*weftv1.Fragment{nil, {}, {Name: "x", Tables: []*weftv1.Table{nil}}}})
	if err != nil || len(plan.GetRejections()) != 4 {
		t.Errorf("the plan of nonsense is %v, error %v: want four rejections", plan, err)
	}
	if _, err = c.Plan(ctx, &weftv1.PlanRequest{Withdraw: make([]*weftv1.FragmentName, 1001)}); !errors.Is(err, client.ErrInvalid) || !strings.Contains(err.Error(), "at most 1000 are allowed") {
		t.Errorf("a plan of too many: %v", err)
	}
}

var demo = nft.TableID{Family: nft.FamilyIP, Name: "demo"}

// publisher is a program with one set that it wants the aggregator to have.
type publisher struct {
	mu        sync.Mutex
	want      map[string]bool
	snapshots int
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
	return client.SessionConfig{Snapshot: p.fragment}
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorOf is for calls of which only the error is of interest.
func errorOf[T any](_ T, err error) error { return err }

func startSession(t *testing.T, c *client.Client, cfg client.SessionConfig) *client.Session {
	t.Helper()
	s := c.Session(cfg)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestDialErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	must(t, err)
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
	must(t, <-dialed)
}

// TestRejectedPatchIsFollowedBySnapshot has a patch refused: the next one must
// bring everything that the publisher wants.
func TestRejectedPatchIsFollowedBySnapshot(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	p := newPublisher("10.0.0.1")
	s := startSession(t, d.Dial(t, "tester"), p.config())
	must(t, errorOf(s.Put(ctx, p.fragment("list"))))
	bad := p.change("list", "10.0.0.2", "")
	bad.Tables[0].Elements[0].Add = append(bad.Tables[0].Elements[0].Add, &weftv1.Element{Key: "nonsense"})
	var rejected *client.RejectedError
	if _, err := s.Patch(ctx, bad); !errors.As(err, &rejected) {
		t.Fatalf("bad patch: %v", err)
	}
	before := p.snapshots
	must(t, errorOf(s.Patch(ctx, p.change("list", "10.0.0.3", ""))))
	if p.snapshots != before+1 {
		t.Fatal("the patch did not travel as a snapshot")
	}
	if got := k.Elements(demo, "blocked"); !slices.Equal(got, p.keys()) {
		t.Fatalf("elements %v: want %v", got, p.keys())
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
	must(t, s.Close())
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
	must(t, err)
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
