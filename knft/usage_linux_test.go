package knft_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/knft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// outcome is the class of Run's error for a caller.
type outcome string

const (
	done     outcome = "done"
	notFound outcome = "not found"
	exists   outcome = "already exists"
	refused  outcome = "refused"
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return done
	case knftables.IsNotFound(err):
		return notFound
	case knftables.IsAlreadyExists(err):
		return exists
	default:
		return refused
	}
}

// usage is one use of knftables: the first transaction sets the scene, the second is tested.
type usage struct {
	name   string
	family knftables.Family
	given  func(tx *knftables.Transaction)
	when   func(s *scene, tx *knftables.Transaction)
	want   outcome
	// fake is the reason if NewFake differs from nft(8).
	fake string
}

// scene is the state that a usage can look up before its transaction.
type scene struct {
	t   *testing.T
	nft knftables.Interface
}

func (s *scene) handle(chain, comment string) *int {
	s.t.Helper()
	rules, err := s.nft.ListRules(aggregatortest.Context(s.t), chain)
	if err != nil {
		s.t.Errorf("list rules: %v", err)
	}
	for _, r := range rules {
		if r.Comment != nil && *r.Comment == comment {
			return r.Handle
		}
	}
	s.t.Errorf("chain %s has no rule %q", chain, comment)
	return knftables.PtrTo(1)
}

// A check must have the same outcome as the transaction; around it, watch reads the table in the
// kernel.
func (u *usage) run(t *testing.T, nft knftables.Interface, watch func() string) string {
	ctx := aggregatortest.Context(t)
	if u.given != nil {
		tx := nft.NewTransaction()
		u.given(tx)
		if err := nft.Run(ctx, tx); err != nil {
			t.Errorf("given: %v\n%s", err, tx)
		}
	}
	tx := nft.NewTransaction()
	u.when(&scene{t: t, nft: nft}, tx)
	before := watch()
	if err := nft.Check(ctx, tx); outcomeOf(err) != u.want {
		t.Errorf("check: %s: %v: want %s\n%s", outcomeOf(err), err, u.want, tx)
	}
	if after := watch(); after != before {
		t.Errorf("check has changed the table: before\n%s\nafter\n%s", before, after)
	}
	err := nft.Run(ctx, tx)
	if outcomeOf(err) != u.want {
		t.Errorf("run: %s: %v: want %s\n%s", outcomeOf(err), err, u.want, tx)
	}
	return fmt.Sprintf("run: %s\n%s", outcomeOf(err), inventory(ctx, nft))
}

// inventory is the results of the List methods, sorted, because the order is unspecified, and without
// handles.
func inventory(ctx context.Context, nft knftables.Interface) string {
	var out strings.Builder
	all, err := nft.ListAll(ctx)
	if err != nil {
		return fmt.Sprintf("list all: %s\n", outcomeOf(err))
	}
	for _, k := range []string{"chain", "set", "map"} {
		slices.Sort(all[k])
		fmt.Fprintf(&out, "list all %s: %v\n", k, all[k])
	}
	rules, err := nft.ListRules(ctx, "")
	fmt.Fprintf(&out, "list rules: %s\n", outcomeOf(err))
	for _, c := range all["chain"] {
		for _, r := range rules {
			if r.Chain == c {
				fmt.Fprintf(&out, "  %s %v %s\n", c, r.Handle != nil && *r.Handle > 0, text(r.Comment))
			}
		}
	}
	for _, k := range []string{"set", "map"} {
		for _, name := range all[k] {
			out.WriteString(listElements(ctx, nft, k, name))
		}
	}
	return out.String()
}

func listElements(ctx context.Context, nft knftables.Interface, k, name string) string {
	elements, err := nft.ListElements(ctx, k, name)
	var lines []string
	for _, e := range elements {
		lines = append(lines, fmt.Sprintf("  %s%s %q %q %s\n", e.Set, e.Map, e.Key, e.Value, text(e.Comment)))
	}
	slices.Sort(lines)
	return fmt.Sprintf("list elements %s %s: %s\n%s", k, name, outcomeOf(err), strings.Join(lines, ""))
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// normalize sorts the objects of "nft list table", because the order is unspecified, and removes the
// mark of weft's ownership.
func normalize(list string) string {
	list = strings.NewReplacer("\tflags owner\n", "", "\tflags owner,persist\n", "").Replace(list)
	var head, blocks []string
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(line, " # progname")
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line == "}":
		case strings.HasPrefix(line, "\t") && strings.HasSuffix(line, "{"):
			blocks = append(blocks, line+"\n")
		case len(blocks) == 0:
			head = append(head, line)
		default:
			blocks[len(blocks)-1] += line + "\n"
		}
	}
	slices.Sort(blocks)
	return strings.Join(head, "\n") + "\n" + strings.Join(blocks, "")
}

// world is two network namespaces: one for nft(8), one for weft.
type world struct {
	real, weft *nfttest.NS
	daemon     *aggregatortest.Daemon
}

func newWorld(t *testing.T) *world {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	w := &world{real: nfttest.New(t), weft: nfttest.New(t)}
	w.daemon = startDaemon(t, w.weft, aggregator.Config{})
	return w
}

// The kernel's socket is closed after the daemon's end.
func startDaemon(t testing.TB, ns *nfttest.NS, cfg aggregator.Config) *aggregatortest.Daemon {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	cfg.Kernel = conn
	return aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
}

func newAdapter(t *testing.T, c *client.Client, cfg knft.Config) *knft.Adapter {
	t.Helper()
	a, err := knft.New(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// "none" if the table does not exist
func list(t *testing.T, ns *nfttest.NS, family knftables.Family, table string) string {
	t.Helper()
	out, err := ns.Output("", "nft", "list", "table", string(family), table)
	if err != nil {
		if strings.Contains(err.Error(), "No such file or directory") {
			return "none"
		}
		t.Fatal(err)
	}
	return normalize(out)
}

// TestUsage runs each usage with knftables.New and nft(8), with the adapter and weft, and with
// knftables.NewFake. Outcomes and answers of the List methods must be equal, and nft(8) must list the
// same table for the first two.
func TestUsage(t *testing.T) {
	w := newWorld(t)
	c := w.daemon.Dial(t, "agent")
	for i, u := range usages() {
		t.Run(u.name, func(t *testing.T) {
			family, table := u.family, fmt.Sprintf("t%d", i)
			if family == "" {
				family = knftables.IPv4Family
			}
			var real string
			err := w.real.Do(func() error {
				nft, err := knftables.New(family, table, knftables.EmulateDestroy)
				if err != nil {
					return err
				}
				real = u.run(t, nft, func() string { return "" })
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			adapter := newAdapter(t, c, knft.Config{Family: family, Table: table})
			weft := u.run(t, adapter, func() string {
				out, err := w.weft.Output("", "nft", "-a", "list", "ruleset")
				return fmt.Sprint(out, err)
			})
			if weft != real {
				t.Errorf("nft:\n%s\nweft:\n%s", real, weft)
			}
			if a, b := list(t, w.real, family, table), list(t, w.weft, family, table); a != b {
				t.Errorf("nft lists:\n%s\nweft's table:\n%s", a, b)
			}
			// nft(8) reads the whole ruleset each time: keep it small.
			_, _ = w.real.Output("", "nft", "flush", "ruleset")
			removeTable(t, adapter)
			if u.fake == "" {
				if fake := u.run(t, knftables.NewFake(family, table), func() string { return "" }); fake != weft {
					t.Errorf("fake:\n%s\nweft:\n%s", fake, weft)
				}
			}
		})
	}
}

func removeTable(t *testing.T, nft knftables.Interface) {
	t.Helper()
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	if err := nft.Run(aggregatortest.Context(t), tx); err != nil {
		t.Error(err)
	}
}

// TestLists compares the List methods of nft(8) and weft, on an existing and a missing table.
func TestLists(t *testing.T) {
	w := newWorld(t)
	c := w.daemon.Dial(t, "agent")
	for table, given := range map[string]func(tx *knftables.Transaction){
		"full":  scenery,
		"empty": func(tx *knftables.Transaction) { tx.Add(&knftables.Table{}) },
		"none":  func(*knftables.Transaction) {},
	} {
		t.Run(table, func(t *testing.T) {
			var real string
			err := w.real.Do(func() error {
				nft, err := knftables.New(knftables.IPv4Family, table)
				if err != nil {
					return err
				}
				real = lists(t, nft, given)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if weft := lists(t, newAdapter(t, c, knft.Config{Family: knftables.IPv4Family, Table: table}), given); weft != real {
				t.Errorf("nft:\n%s\nweft:\n%s", real, weft)
			}
		})
	}
}

func lists(t *testing.T, nft knftables.Interface, given func(tx *knftables.Transaction)) string {
	ctx := aggregatortest.Context(t)
	tx := nft.NewTransaction()
	given(tx)
	if err := nft.Run(ctx, tx); err != nil {
		t.Error(err)
	}
	var out strings.Builder
	for _, k := range []string{"chain", "chains", "set", "sets", "map", "maps", "counter", "counters", "flowtable", "flowtables", "rule", "elements"} {
		names, err := nft.List(ctx, k)
		slices.Sort(names)
		fmt.Fprintf(&out, "list %s: %v %s\n", k, names, outcomeOf(err))
	}
	for _, name := range []string{"base", "empty", "nowhere"} {
		rules, err := nft.ListRules(ctx, name)
		fmt.Fprintf(&out, "list rules %s: %d %s\n", name, len(rules), outcomeOf(err))
		for _, r := range rules {
			fmt.Fprintf(&out, "  %s %s %s %q %v %v %s\n", r.Family, r.Table, r.Chain, r.Rule, r.Index, *r.Handle > 0, text(r.Comment))
		}
	}
	for _, name := range []string{"hosts", "ports", "nowhere"} {
		for _, k := range []string{"set", "map", "chain"} {
			out.WriteString(listElements(ctx, nft, k, name))
		}
	}
	counters, err := nft.ListCounters(ctx)
	fmt.Fprintf(&out, "list counters: %d %s\n", len(counters), outcomeOf(err))
	all, err := nft.ListAll(ctx)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		slices.Sort(all[k])
		fmt.Fprintf(&out, "list all %s: %v\n", k, all[k])
	}
	fmt.Fprintf(&out, "list all: %s\n", outcomeOf(err))
	return out.String()
}

// TestElementsRunOut adds an expired element again, with nft(8) and with weft.
func TestElementsRunOut(t *testing.T) {
	w := newWorld(t)
	c := w.daemon.Dial(t, "agent")
	for table, first := range map[string]struct {
		set *knftables.Set
		key string
	}{
		"byset":     {&knftables.Set{Name: "s", Type: "ipv4_addr", Timeout: ptr(time.Second)}, "10.0.0.1"},
		"byelement": {&knftables.Set{Name: "s", Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.TimeoutFlag}}, "10.0.0.1 timeout 300ms"},
	} {
		cycle := func(nft knftables.Interface) error {
			tx := nft.NewTransaction()
			tx.Add(&knftables.Table{})
			tx.Add(first.set)
			tx.Add(&knftables.Element{Set: "s", Key: []string{"10.0.0.9 timeout 1h"}})
			tx.Add(&knftables.Element{Set: "s", Key: []string{first.key}})
			if err := nft.Run(aggregatortest.Context(t), tx); err != nil {
				return err
			}
			tx = nft.NewTransaction()
			tx.Create(&knftables.Element{Set: "s", Key: []string{"10.0.0.1 timeout 2h"}})
			aggregatortest.Eventually(t, "the element can be created again", func() bool {
				return nft.Check(aggregatortest.Context(t), tx) == nil
			})
			return nft.Run(aggregatortest.Context(t), tx)
		}
		t.Run(table, func(t *testing.T) {
			err := w.real.Do(func() error {
				nft, err := knftables.New(knftables.IPv4Family, table)
				if err != nil {
					return err
				}
				return cycle(nft)
			})
			if err != nil {
				t.Errorf("nft: %v", err)
			}
			if err := cycle(newAdapter(t, c, knft.Config{Family: knftables.IPv4Family, Table: table})); err != nil {
				t.Errorf("weft: %v", err)
			}
			for _, ns := range []*nfttest.NS{w.real, w.weft} {
				out := list(t, ns, knftables.IPv4Family, table)
				if !strings.Contains(out, "10.0.0.9 timeout 1h") || !strings.Contains(out, "10.0.0.1 timeout 2h") {
					t.Errorf("elements are missing:\n%s", out)
				}
			}
		})
	}
}
