package kernel

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestCheckChangesNothing checks a batch with every kind of op, and then that
// the ruleset, the generation, the owner and the events are as before.
func TestCheckChangesNothing(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		c := open(t, ns, cfg)
		id, other := testTable(), nft.TableID{Family: nft.FamilyInet, Name: "other"}
		set := setOf(t, nft.Set{Name: "blocked", Type: "ipv4_addr"})
		base := &object.Chain{Name: "input", Base: &object.Base{Type: "filter", Hook: 1}}
		kept, gone := &Handle{}, &Handle{}
		commit(t, c,
			AddTable{Table: id}, AddTable{Table: other}, AddSet{Table: id, Set: set}, AddChain{Table: id, Chain: base},
			AddChain{Table: id, Chain: chain("leaf")}, AddElements{Table: id, Set: set, Elements: pack(t, set, "10.0.0.1", "10.0.0.2")},
			AddRule{Table: id, Chain: "input", Rule: ruleOf(t, "counter packets 7 bytes 70", "kept"), Handle: kept},
			AddRule{Table: id, Chain: "input", Rule: ruleOf(t, "tcp dport 22 accept", "gone"), After: kept, Handle: gone},
		)
		list := func() string { return ns.Run(t, "nft", "-a", "list", "ruleset") }
		before := list()
		gen, err := c.Generation()
		if err != nil {
			t.Fatal(err)
		}
		events, err := listen(c.netNS, c.portID.Load(), unix.NFNLGRP_NFTABLES)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = events.close() }()

		fresh := &Handle{}
		more := setOf(t, nft.Set{Name: "more", Type: "ipv4_addr"})
		third := nft.TableID{Family: nft.FamilyIP6, Name: "third"}
		err = c.Check([]Op{
			AddTable{Table: third},
			DeleteRule{Table: id, Chain: "input", Handle: gone},
			DeleteElements{Table: id, Set: set, Elements: pack(t, set, "10.0.0.1")},
			DeleteChain{Table: id, Name: "leaf"},
			AddSet{Table: id, Set: more}, AddChain{Table: id, Chain: chain("new")}, AddChain{Table: third, Chain: chain("new")},
			AddElements{Table: id, Set: set, Elements: pack(t, set, "10.0.0.3")},
			AddRule{Table: id, Chain: "input", Rule: ruleOf(t, "jump new", ""), After: kept, Handle: fresh},
			FlushSet{Table: id, Name: "more"}, DeleteSet{Table: id, Name: "more"},
			DeleteTable{Table: other},
		})
		if err != nil {
			t.Fatalf("%+v", err)
		}
		if fresh.N != 0 {
			t.Errorf("a rule that was checked has handle %d", fresh.N)
		}
		if after := list(); after != before {
			t.Errorf("the ruleset changed:\n before\n%s after\n%s", before, after)
		}
		if now, err := c.Generation(); err != nil || now != gen {
			t.Errorf("generation is %d, %v: want %d", now, err, gen)
		}
		if _, err := events.recv(false); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("listening for events says %v: want that there are none", err)
		}
		if c.Owner() {
			if _, err := ns.Output("", "nft", "add", "chain", "ip", "weft", "intruder"); err == nil || !strings.Contains(err.Error(), "not permitted") {
				t.Errorf("another process that changes the table gets %v: want that it is not permitted", err)
			}
		}
		// The connection still does not own the tables of the batch.
		if err := c.Check([]Op{AddChain{Table: third, Chain: chain("new")}}); !errors.Is(err, ErrNotAdopted) {
			t.Errorf("error is %v: want ErrNotAdopted", err)
		}
		// The checked batch can be committed.
		commit(t, c, DeleteRule{Table: id, Chain: "input", Handle: gone}, DeleteTable{Table: other})
	})
}

// TestCheckNamesTheCulprit checks batches that the kernel rejects: some while it reads the
// op, others only at the end of the transaction.
func TestCheckNamesTheCulprit(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		c := open(t, ns, cfg)
		id := testTable()
		set := setOf(t, nft.Set{Name: "small", Type: "ipv4_addr", Size: 2})
		ranges := setOf(t, nft.Set{Name: "ranges", Type: "ipv4_addr", Flags: []string{"interval"}})
		base := &object.Chain{Name: "input", Base: &object.Base{Type: "filter", Hook: 1}}
		commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddSet{Table: id, Set: ranges}, AddChain{Table: id, Chain: base},
			AddElements{Table: id, Set: ranges, Elements: pack(t, ranges, "10.0.0.0/24")})
		for _, tt := range []struct {
			name  string
			ops   []Op
			index int
			errno error
		}{
			{"full set", []Op{
				AddChain{Table: id, Chain: chain("a")},
				AddElements{Table: id, Set: set, Elements: pack(t, set, "10.0.0.1", "10.0.0.2", "10.0.0.3")},
			}, 1, unix.ENFILE},
			{"overlap", []Op{AddElements{Table: id, Set: ranges, Elements: pack(t, ranges, "10.0.0.5")}}, 0, unix.EEXIST},
			{"loop", []Op{
				AddChain{Table: id, Chain: chain("a")}, AddChain{Table: id, Chain: chain("b")},
				AddRule{Table: id, Chain: "input", Rule: ruleOf(t, "jump a", ""), Handle: &Handle{}},
				AddRule{Table: id, Chain: "a", Rule: ruleOf(t, "jump b", ""), Handle: &Handle{}},
				AddRule{Table: id, Chain: "b", Rule: ruleOf(t, "jump a", ""), Handle: &Handle{}},
			}, -2, nil},
			{"nat in filter", []Op{AddRule{Table: id, Chain: "input", Rule: ruleOf(t, "masquerade", ""), Handle: &Handle{}}}, 0, unix.EOPNOTSUPP},
			{"no such chain", []Op{DeleteChain{Table: id, Name: "nowhere"}}, 0, unix.ENOENT},
		} {
			t.Run(tt.name, func(t *testing.T) {
				before := ns.ListRuleset(t)
				checked, committed := c.Check(tt.ops), commitError(c, tt.ops)
				var be, ce *BatchError
				if !errors.As(checked, &be) || !errors.As(committed, &ce) {
					t.Fatalf("check says %v, commit says %v: want a BatchError of both", checked, committed)
				}
				if be.Index != ce.Index || be.Errno != ce.Errno {
					t.Errorf("check blames op %d (%v), commit op %d (%v)", be.Index, be.Errno, ce.Index, ce.Errno)
				}
				if tt.index >= 0 && be.Index != tt.index || tt.errno != nil && !errors.Is(be.Errno, tt.errno) {
					t.Errorf("check blames op %d (%v): want %d (%v)", be.Index, be.Errno, tt.index, tt.errno)
				}
				if after := ns.ListRuleset(t); after != before {
					t.Errorf("the ruleset changed:\n%s", after)
				}
			})
		}
		if err := c.Check(nil); err != nil {
			t.Errorf("checking nothing: %v", err)
		}
	})
}

func commitError(c *Conn, ops []Op) error {
	_, err := c.Commit(ops)
	return err
}

// TestCheckAfterForeignChange changes the generation between commits. Without
// ownership the connection has to recheck its tables.
func TestCheckAfterForeignChange(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{NoOwner: true})
	id := testTable()
	commit(t, c, AddTable{Table: id})
	ns.Nft(t, "add table ip foreign")
	if err := c.Check([]Op{AddChain{Table: id, Chain: chain("a")}}); err != nil {
		t.Errorf("%+v", err)
	}
	ns.Nft(t, "delete table ip weft")
	if err := c.Check([]Op{AddChain{Table: id, Chain: chain("a")}}); !errors.Is(err, ErrDrift) {
		t.Errorf("error is %v: want ErrDrift", err)
	}
}
