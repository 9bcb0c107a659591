package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

func TestDumpReturnsWhatWasCommitted(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		ns.Nft(t, "table ip foreign {\n set s {\n type ipv4_addr\n elements = { 1.2.3.4 }\n }\n chain c {\n counter\n }\n}\n")
		c := open(t, ns, cfg)
		id := testTable()
		chains := []*object.Chain{
			{Name: "regular", Comment: "a comment"},
			{Name: "base", Base: &object.Base{Type: "nat", Hook: 0, Priority: -100}},
			{Name: "drops", Base: &object.Base{Type: "filter", Hook: 3, Priority: 2147483647, Drop: true}},
		}
		type content struct {
			set      *set.Set
			elements []set.Element
		}
		timeouts := setOf(t, nft.Set{Name: "timeouts", Type: "ipv4_addr", Flags: []string{"timeout"}, Timeout: time.Hour, GCInterval: 5 * time.Second, Size: 4096})
		expiring := pack(t, timeouts, "10.0.0.1", "10.0.0.2")
		expiring[1].Timeout, expiring[1].Comment = 30*time.Minute, "expires"
		contents := []content{{set: timeouts, elements: expiring}}
		add := func(set *set.Set, texts ...string) {
			contents = append(contents, content{set, pack(t, set, texts...)})
		}
		add(setOf(t, nft.Set{Name: "plain", Type: "inet_service", Comment: "ports"}), "80", "443")
		add(setOf(t, nft.Set{Name: "empty", TypeOf: "ip saddr"}))
		add(setOf(t, nft.Set{Name: "intervals", Type: "ipv4_addr", Flags: []string{"interval"}, AutoMerge: true}),
			"0.0.0.0/8", "10.0.0.0/8", "11.0.0.0-11.0.0.9", "128.129.130.131", "192.168.1.1", "200.0.0.0-223.255.255.255", "224.0.0.0/3")
		add(setOf(t, nft.Set{Name: "whole", Type: "inet_service", Flags: []string{"interval"}}), "0-65535")
		add(setOf(t, nft.Set{Name: "ranges", Type: "ipv4_addr . inet_service", Flags: []string{"interval"}}),
			"10.0.0.0/8 . 80", "11.0.0.1 . 1024-2048")
		add(mapOf(t, nft.Map{Name: "verdicts", TypeOf: "ip daddr . th dport : verdict", Policy: "memory"}),
			"10.0.0.1 . 80 : goto regular", "10.0.0.2 . 80 : drop", "10.0.0.3 . 80 : jump regular")
		add(mapOf(t, nft.Map{Name: "values", TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"}),
			"10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080", "10.96.0.1 . udp . 53 . 9 : 10.1.0.2 . 53")
		add(mapOf(t, nft.Map{Name: "zones", Type: "ipv4_addr : mark", Flags: []string{"interval"}}), "10.0.0.0/8 : 1", "11.0.0.0/9 : 2")

		ops := []Op{AddTable{Table: id, Comment: "all of it"}}
		for _, ch := range chains {
			ops = append(ops, AddChain{Table: id, Chain: ch})
		}
		for _, x := range contents {
			ops = append(ops, AddSet{Table: id, Set: x.set})
			if len(x.elements) > 0 {
				ops = append(ops, AddElements{Table: id, Set: x.set, Elements: x.elements})
			}
		}
		rule := ruleOf(t, "ip saddr { 10.0.0.1, 10.0.0.2 } accept", "why")
		first, second := &Handle{}, &Handle{}
		ops = append(ops, AddRule{Table: id, Chain: "regular", Rule: rule, Owner: "alice/web", Handle: first},
			AddRule{Table: id, Chain: "regular", Rule: rule, Owner: "bob", After: first, Handle: second})
		commit(t, c, ops...)

		tables, err := c.Dump()
		if err != nil {
			t.Fatal(err)
		}
		if len(tables) != 1 || tables[0].ID != id || tables[0].Comment != "all of it" || !tables[0].Owned {
			t.Fatalf("dump = %+v, want ip weft alone", tables)
		}
		for i, want := range chains {
			got := tables[0].Chains[i].Decl
			if got.Name != want.Name || got.Comment != want.Comment || (got.Base == nil) != (want.Base == nil) ||
				got.Base != nil && *got.Base != *want.Base {
				t.Errorf("chain %+v base %+v, want %+v base %+v", got, got.Base, want, want.Base)
			}
		}
		rules := tables[0].Chains[0].Rules
		want := userdata.RuleInfo{Comment: "why", Fingerprint: rule.Fingerprint, Owner: "alice/web", Ours: true}
		if len(rules) != 2 || rules[0].Info != want || *rules[0].Handle != *first || rules[1].Info.Owner != "bob" || *rules[1].Handle != *second {
			t.Errorf("rules = %+v", rules)
		}
		if len(tables[0].Sets) != len(contents) {
			t.Fatalf("%d sets, want %d", len(tables[0].Sets), len(contents))
		}
		for _, x := range contents {
			i := slices.IndexFunc(tables[0].Sets, func(s Set) bool { return s.Decl.Name == x.set.Name })
			if i < 0 {
				t.Errorf("set %s is missing", x.set.Name)
				continue
			}
			got := tables[0].Sets[i]
			if !got.Decl.Equal(x.set) || !x.set.Equal(got.Decl) {
				t.Errorf("set %s:\n got %+v\nwant %+v", x.set.Name, got.Decl, x.set)
			}
			if got.Decl.Comment != x.set.Comment || got.Decl.AutoMerge != x.set.AutoMerge || !slices.Equal(got.Decl.Key.Names, x.set.Key.Names) {
				t.Errorf("set %s: comment %q auto-merge %v key %v", x.set.Name, got.Decl.Comment, got.Decl.AutoMerge, got.Decl.Key.Names)
			}
			for i := range got.Elements {
				// The time that is left of a timeout differs.
				e := &got.Elements[i]
				if left := e.Expires(); left > 0 && left <= cmp.Or(e.Timeout, x.set.Timeout) {
					e.State = set.NewState(0, e.Stateful())
				}
			}
			sort(got.Elements)
			sort(x.elements)
			if !slices.Equal(got.Elements, x.elements) {
				t.Errorf("elements of %s:\n got %q\nwant %q", x.set.Name, got.Elements, x.elements)
			}
		}
	})
}

// sort sorts elements by key.
func sort(elements []set.Element) {
	slices.SortFunc(elements, func(a, b set.Element) int { return strings.Compare(a.Key, b.Key) })
}

func TestDumpWhileAnotherWriterIsBusy(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		c := open(t, ns, cfg)
		id := testTable()
		set, elements := loadEndpoints(t, 20_000)
		commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddElements{Table: id, Set: set, Elements: elements})
		stop := busyWriter(t, ns)
		defer stop()
		for range 5 {
			tables, err := c.Dump()
			if err != nil {
				t.Fatal(err)
			}
			if n := len(tables[0].Sets[0].Elements); n != len(elements) {
				t.Fatalf("%d elements, want %d", n, len(elements))
			}
		}
	})
}

func TestDumpSeesChangeMeanwhile(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{NoOwner: true})
	populate(t, c)
	events, err := listen(c.netNS, c.portID.Load(), unix.NFNLGRP_NFTABLES)
	if err != nil {
		t.Fatal(err)
	}
	defer events.close()
	tables, err := c.dumpTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"add table ip other\nadd table ip6 weft", false},
		{"add chain ip weft x", true},
		{"delete chain ip weft x", true},
		{"add element ip weft endpoints { 10.0.0.1 . tcp . 80 . 0 : 10.0.0.2 . 80 }", true},
	} {
		ns.Nft(t, tt.text)
		if changed, err := c.changed(events, tables); err != nil || changed != tt.want {
			t.Errorf("changed after %q = %v, %v, want %v", tt.text, changed, err, tt.want)
		}
	}
}

// busyWriter changes a foreign table as fast as nft can until stop is called.
func busyWriter(t *testing.T, ns *nfttest.NS) (stop func()) {
	t.Helper()
	ns.Nft(t, "add table ip busy")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := ns.Output("add chain ip busy c\ndelete chain ip busy c\n", "nft", "-f", "-"); err != nil {
				t.Errorf("busy writer: %v", err)
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

func TestGuardedCommits(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{NoOwner: true})
	id := testTable()
	commit(t, c, AddTable{Table: id})
	// A change by another process costs one retry.
	ns.Nft(t, "add table ip other")
	if stats := commit(t, c, AddChain{Table: id, Chain: chain("a")}); stats.Retries != 1 {
		t.Errorf("stats = %+v, want one retry", stats)
	}
	if stats := commit(t, c, AddChain{Table: id, Chain: chain("b")}); stats.Retries != 0 {
		t.Errorf("stats = %+v, want no retry", stats)
	}
	// A table that another process deleted or replaced is not touched.
	ns.Nft(t, "delete table ip weft")
	if _, err := c.Commit([]Op{AddChain{Table: id, Chain: chain("c")}}); !errors.Is(err, ErrDrift) {
		t.Errorf("commit to a deleted table = %v, want ErrDrift", err)
	}
	ns.Nft(t, "add table ip weft")
	for _, op := range []Op{DeleteTable{Table: id}, AddTable{Table: id}} {
		if _, err := c.Commit([]Op{op}); !errors.Is(err, ErrDrift) {
			t.Errorf("%s = %v, want ErrDrift", op, err)
		}
	}
	if tables, err := c.Dump(); err != nil || len(tables) != 0 {
		t.Errorf("Dump = %+v, %v, want nothing", tables, err)
	}
	if _, err := c.Commit([]Op{AddTable{Table: id}}); !errors.Is(err, ErrForeignTable) {
		t.Errorf("AddTable = %v, want ErrForeignTable", err)
	}
	ns.Nft(t, "delete table ip weft")
	commit(t, c, AddTable{Table: id}, AddChain{Table: id, Chain: chain("a")})
	ns.Nft(t, "delete table ip weft")
	commit(t, c, AddTable{Table: id}, AddChain{Table: id, Chain: chain("a")}) // creates it again
	stop := busyWriter(t, ns)
	defer stop()
	for range 50 {
		if _, err := c.Commit([]Op{AddChain{Table: id, Chain: chain("x")}, DeleteChain{Table: id, Name: "x"}}); err != nil && !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
	}
}

// TestBatchWithoutEffect tests that batches that change nothing, and so do not begin a
// generation, do not hide a change by another process.
func TestBatchWithoutEffect(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{NoOwner: true})
	id := testTable()
	s := setOf(t, nft.Set{Name: "s", Type: "ipv4_addr", Flags: []string{"timeout"}})
	e := pack(t, s, "10.0.0.1")
	gone := pack(t, s, "10.0.0.2")
	commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: s}, AddElements{Table: id, Set: s, Elements: e}, AddChain{Table: id, Chain: chain("a")})
	ops := []Op{AddElements{Table: id, Set: s, Elements: e}, AddTable{Table: id}, FlushSet{Table: id, Name: "s"}, FlushSet{Table: id, Name: "s"}}
	if c.destroy {
		ops = append(ops, DeleteElements{Table: id, Set: s, Elements: gone})
	}
	for i, op := range ops {
		if stats := commit(t, c, op); stats.Retries != 0 {
			t.Errorf("%s: stats = %+v, want no retry", Describe(op), stats)
		}
		if stats := commit(t, c, AddChain{Table: id, Chain: chain(fmt.Sprint("own", i))}); stats.Retries != 0 {
			t.Errorf("after %s: stats = %+v, want no retry", Describe(op), stats)
		}
		commit(t, c, op)
		ns.Nft(t, "add table ip other"+fmt.Sprint(i))
		if stats := commit(t, c, AddChain{Table: id, Chain: chain(fmt.Sprint("b", i))}); stats.Retries != 1 {
			t.Errorf("after %s and a change by nft: stats = %+v, want one retry", Describe(op), stats)
		}
	}
}

func TestLostAcknowledgement(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	id := testTable()
	commit(t, c, AddTable{Table: id})
	// The kernel cannot put an answer into a full buffer.
	setOption(t, c, unix.SO_RCVBUF, 1)
	ops := []Op{AddChain{Table: id, Chain: chain("a")}}
	for i := range 200 {
		ops = append(ops, AddRule{Table: id, Chain: "a", Rule: ruleOf(t, "counter", strings.Repeat("x", i%100)), Handle: &Handle{}})
	}
	_, err := c.Commit(ops)
	if !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("Commit = %v, want ErrUnknownOutcome", err)
	}
	c.sock.recvSize = 0
	commit(t, c, AddChain{Table: id, Chain: chain("b")})
	tables, err := c.Dump()
	if err != nil {
		t.Fatal(err)
	}
	if len(tables[0].Chains) != 2 || len(tables[0].Chains[0].Rules) != 200 {
		t.Errorf("%d chains after the lost answer", len(tables[0].Chains))
	}
}

func TestBatchThatIsTooLarge(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	set, elements := loadEndpoints(t, 1000)
	ops := []Op{AddTable{Table: testTable()}, AddSet{Table: testTable(), Set: set}, AddElements{Table: testTable(), Set: set, Elements: elements}}
	// The size that a process gets if net.core.wmem_max limits it.
	setOption(t, c, unix.SO_SNDBUF, 4096)
	if _, err := c.Commit(ops); !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("Commit = %v, want ErrTooLarge", err)
	}
	c.sock.sendSize = 0
	commit(t, c, ops...)
}

func TestClosed(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Commit([]Op{AddTable{Table: testTable()}}); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit = %v, want ErrClosed", err)
	}
	if _, err := c.Dump(); !errors.Is(err, ErrClosed) {
		t.Errorf("Dump = %v, want ErrClosed", err)
	}
	if _, err := c.Generation(); !errors.Is(err, ErrClosed) {
		t.Errorf("Generation = %v, want ErrClosed", err)
	}
}
