package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

// TestDumpReturnsWhatWasCommitted has chains and rules; TestListedAsNFT has sets.
func TestDumpReturnsWhatWasCommitted(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		ns.Nft(t, "table ip foreign {\n set s {\n type ipv4_addr\n elements = { 1.2.3.4 }\n }\n chain c {\n counter\n }\n}\n")
		c := open(t, ns, cfg)
		id := testTable()
		rule := ruleOf("ip saddr { 10.0.0.1, 10.0.0.2 } accept", "why")
		first, second := &Handle{}, &Handle{}
		ops := []Op{
			AddTable{Table: id, Comment: "all of it"},
			AddChain{Table: id, Chain: &object.Chain{Name: "regular", Comment: "a comment"}},
			AddChain{Table: id, Chain: &object.Chain{Name: "base", Base: &object.Base{Type: "nat", Hook: 0, Priority: -100}}},
			AddChain{Table: id, Chain: &object.Chain{Name: "drops", Base: &object.Base{Type: "filter", Hook: 3, Priority: 2147483647, Drop: true}}},
			AddRule{Table: id, Chain: "regular", Rule: rule, Owner: "alice/web", Handle: first},
			AddRule{Table: id, Chain: "regular", Rule: rule, Owner: "bob", After: first, Handle: second},
		}
		commit(t, c, ops...)
		tables := nfttest.Must(c.Dump())
		if len(tables) != 1 || tables[0].ID != id || tables[0].Comment != "all of it" || !tables[0].Owned {
			t.Fatalf("dump = %+v, want ip weft alone", tables)
		}
		checkDump(t, c, ops)
		rules := tables[0].Chains[0].Rules
		want := userdata.RuleInfo{Comment: "why", Fingerprint: rule.Fingerprint, Owner: "alice/web", Ours: true}
		if len(rules) != 2 || rules[0].Info != want || *rules[0].Handle != *first || rules[1].Info.Owner != "bob" || *rules[1].Handle != *second {
			t.Errorf("rules = %+v", rules)
		}
	})
}

func TestDumpWhileAnotherWriterIsBusy(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns, c := connect(t, cfg)
		id := testTable()
		set, elements := loadEndpoints(20_000)
		commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddElements{Table: id, Set: set, Elements: elements})
		stop := busyWriter(t, ns)
		defer stop()
		for range 5 {
			tables := nfttest.Must(c.Dump())
			if n := len(tables[0].Sets[0].Elements); n != len(elements) {
				t.Fatalf("%d elements, want %d", n, len(elements))
			}
		}
	})
}

func TestDumpSeesChangeMeanwhile(t *testing.T) {
	ns, c := connect(t, Config{NoOwner: true})
	populate(t, c)
	events := nfttest.Must(listen(c.netNS, c.portID.Load(), unix.NFNLGRP_NFTABLES))
	defer events.close()
	tables := nfttest.Must(c.dumpTables())
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
	ns, c := connect(t, Config{NoOwner: true})
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
	ns, c := connect(t, Config{NoOwner: true})
	id := testTable()
	s := setOf(nft.Set{Name: "s", Type: "ipv4_addr", Flags: []string{"timeout"}})
	e := pack(s, "10.0.0.1")
	gone := pack(s, "10.0.0.2")
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
	_, c := connect(t, Config{})
	id := testTable()
	commit(t, c, AddTable{Table: id})
	// The kernel cannot put an answer into a full buffer.
	setOption(t, c, unix.SO_RCVBUF, 1)
	ops := []Op{AddChain{Table: id, Chain: chain("a")}}
	for i := range 200 {
		ops = append(ops, AddRule{Table: id, Chain: "a", Rule: ruleOf("counter", strings.Repeat("x", i%100)), Handle: &Handle{}})
	}
	_, err := c.Commit(ops)
	if !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("Commit = %v, want ErrUnknownOutcome", err)
	}
	c.sock.recvSize = 0
	commit(t, c, AddChain{Table: id, Chain: chain("b")})
	tables := nfttest.Must(c.Dump())
	if len(tables[0].Chains) != 2 || len(tables[0].Chains[0].Rules) != 200 {
		t.Errorf("%d chains after the lost answer", len(tables[0].Chains))
	}
}

func TestBatchThatIsTooLarge(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	set, elements := loadEndpoints(1000)
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
	nfttest.NoError(t, c.Close())
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

// TestListedAsNFT applies declarations and elements with nft(8) in one namespace
// and with weft in another, and compares nft's listings.
func TestListedAsNFT(t *testing.T) {
	text := nfttest.Must(os.ReadFile("testdata/list.nft"))
	theirs, ours := nfttest.New(t), nfttest.New(t)
	theirs.Nft(t, string(text))
	c, table := open(t, ours, Config{}), declared.Parse(string(text))[0]
	commit(t, c, append(opsOfTable(table), ruleOps(table)...)...)
	want, got := listed(theirs.ListRuleset(t)), listed(ours.ListRuleset(t))
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("nft lists another ruleset (-nft +weft):\n%s", diff)
	}
	if n := strings.Count(got, "\tset ") + strings.Count(got, "\tmap "); n < 40 {
		t.Errorf("only %d sets and maps are listed", n)
	}

	// Weft reads back its own declarations.
	dumped, err := c.Dump()
	if err != nil || len(dumped) != 1 {
		t.Fatalf("dump: %d tables, %v", len(dumped), err)
	}
	if len(dumped[0].Sets) != len(table.Contents) {
		t.Errorf("%d sets are dumped, %d were declared", len(dumped[0].Sets), len(table.Contents))
	}
	for _, s := range dumped[0].Sets {
		for _, want := range table.Contents {
			if want.Decl.Name == s.Decl.Name {
				checkDumped(t, want, s)
			}
		}
	}
}

// checkDumped compares a dumped set and its elements with the committed ones.
func checkDumped(t *testing.T, want declared.Set, got Set) {
	t.Helper()
	if !want.Decl.Equal(got.Decl) || got.Decl.Comment != want.Decl.Comment || got.Decl.AutoMerge != want.Decl.AutoMerge || !slices.Equal(got.Decl.Key.Names, want.Decl.Key.Names) {
		t.Errorf("set %s is dumped as %+v, it was declared as %+v", want.Decl.Name, got.Decl, want.Decl)
	}
	words := func(s *set.Set, list []set.Element) map[string]string {
		out := map[string]string{}
		for _, e := range list {
			state := strings.Join(e.Stateful(), " ")
			if state == "" && len(s.Stateful) > 0 {
				state = strings.Join(s.Stateful, " ") // new elements get the statements of their set
			}
			out[s.FormatKey(e)] = fmt.Sprint(s.FormatData(e), e.Comment, state, e.Timeout)
		}
		return out
	}
	if diff := gocmp.Diff(words(want.Decl, want.Elements), words(got.Decl, got.Elements)); diff != "" {
		t.Errorf("set %s has other elements (-declared +dumped):\n%s", want.Decl.Name, diff)
	}
}

// ruleOps returns the ops that add the rules of a table.
func ruleOps(d *declared.Table) (ops []Op) {
	for _, c := range d.Decl.Chains {
		var last *Handle
		for _, r := range c.Rules {
			rule := nfttest.Must(compile.CompileRule(d.Decl.Family, r, d))
			add := AddRule{Table: d.Decl.ID(), Chain: c.Name, Rule: rule, After: last, Handle: &Handle{}}
			ops, last = append(ops, add), add.Handle
		}
	}
	return ops
}

// passing matches the parts of a listing that depend on the time or the owner.
var passing = regexp.MustCompile(`(?m) # progname .*$|^\tflags owner.*\n\n?`)

// expiring matches a remaining time. Only its unit is compared.
var expiring = regexp.MustCompile(`expires (\d+d)?(\d+h)?(\d+)m\S*`)

// listed returns a listing without the parts that differ for other reasons. The order of
// elements of a hash table depends on its seed.
func listed(text string) string {
	text = passing.ReplaceAllString(text, "")
	text = expiring.ReplaceAllString(text, "expires $1$2$3m")
	return sortElements(text)
}

// elementLists matches the elements of a set, which can fill several lines.
var elementLists = regexp.MustCompile(`(?s)elements = \{(.*?)\}`)

func sortElements(text string) string {
	return elementLists.ReplaceAllStringFunc(text, func(list string) string {
		inner := strings.TrimSuffix(strings.TrimPrefix(list, "elements = {"), "}")
		items := strings.Split(inner, ",")
		for i := range items {
			items[i] = strings.Join(strings.Fields(items[i]), " ")
		}
		slices.Sort(items)
		return "elements = {\n\t\t\t" + strings.Join(items, "\n\t\t\t") + "\n\t\t}"
	})
}

// TestMeterIsReplaced replaces a rule by one with a meter of the same name in one
// batch.
func TestMeterIsReplaced(t *testing.T) {
	ns, c := connect(t, Config{})
	id, h := testTable(), &Handle{}
	commit(t, c, AddTable{Table: id}, AddChain{Table: id, Chain: chain("c")},
		AddRule{Table: id, Chain: "c", Rule: ruleOf("meter m { ip saddr counter }", ""), Handle: h})
	commit(t, c, DeleteRule{Table: id, Chain: "c", Handle: h},
		AddRule{Table: id, Chain: "c", Rule: ruleOf("meter m size 64 { ip daddr timeout 5s counter }", "")})
	contains(t, ns.ListRuleset(t), "meter m size 64 { ip daddr timeout 5s counter }")
}
