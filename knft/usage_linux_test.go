package knft_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/knft"
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
	given  step
	when   step
	// with makes the second transaction if it needs the scene.
	with func(s *scene) step
	want outcome
}

// A check must have the same outcome as the transaction; around it, watch reads the table in the
// kernel.
func (u *usage) run(t *testing.T, nft knftables.Interface, watch func() string) string {
	ctx := aggregatortest.Context(t)
	if u.given != nil {
		try(t, nft, u.given)
	}
	when := u.when
	if u.with != nil {
		when = u.with(&scene{t: t, nft: nft})
	}
	tx := nft.NewTransaction()
	when(tx)
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
	client     *client.Client
}

func newWorld(t *testing.T) *world {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	w := &world{real: nfttest.New(t), weft: nfttest.New(t)}
	w.daemon = aggregatortest.StartIn(t, w.weft)
	w.client = w.daemon.Dial(t, "agent")
	return w
}

// both calls f with nft(8) and then with weft, with a table of the same name, which weft removes at the end
// of the test.
func (w *world) both(t *testing.T, family knftables.Family, table string, f func(nft knftables.Interface) string) (real, weft string) {
	t.Helper()
	err := w.real.Do(func() error {
		nft, err := knftables.New(family, table, knftables.EmulateDestroy)
		if err == nil {
			real = f(nft)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	nft := newAdapter(t, w.client, knft.Config{Family: family, Table: table})
	t.Cleanup(func() { must(t, nft, noTable) })
	return real, f(nft)
}

// try is must for a function that runs in a namespace, which may not end the test.
func try(t *testing.T, nft knftables.Interface, all ...step) {
	t.Helper()
	if err := run(t, nft, all...); err != nil {
		t.Error(err)
	}
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

// TestUsage runs each usage with knftables.New and nft(8), and with the adapter and weft. Outcomes and
// answers of the List methods must be equal, and nft(8) must list the same table.
func TestUsage(t *testing.T) {
	w := newWorld(t)
	for i, u := range usages() {
		t.Run(u.name, func(t *testing.T) {
			family, table := cmp.Or(u.family, knftables.IPv4Family), fmt.Sprintf("t%d", i)
			real, weft := w.both(t, family, table, func(nft knftables.Interface) string {
				return u.run(t, nft, func() string {
					out, err := w.weft.Output("", "nft", "-a", "list", "ruleset")
					return fmt.Sprint(out, err)
				})
			})
			if weft != real {
				t.Errorf("nft:\n%s\nweft:\n%s", real, weft)
			}
			if a, b := list(t, w.real, family, table), list(t, w.weft, family, table); a != b {
				t.Errorf("nft lists:\n%s\nweft's table:\n%s", a, b)
			}
			// nft(8) reads the whole ruleset each time: keep it small.
			_, _ = w.real.Output("", "nft", "flush", "ruleset")
		})
	}
}

func noTable(tx *knftables.Transaction) { steps(add(table()), remove(table()))(tx) }

// TestLists compares the List methods of nft(8) and weft, on an existing and a missing table.
func TestLists(t *testing.T) {
	w := newWorld(t)
	for table, given := range map[string]step{"full": scenery, "empty": add(table()), "none": steps()} {
		t.Run(table, func(t *testing.T) {
			real, weft := w.both(t, knftables.IPv4Family, table, func(nft knftables.Interface) string {
				try(t, nft, given)
				return lists(t, nft)
			})
			if weft != real {
				t.Errorf("nft:\n%s\nweft:\n%s", real, weft)
			}
		})
	}
}

func lists(t *testing.T, nft knftables.Interface) string {
	ctx := aggregatortest.Context(t)
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
	brief := set("s", "ipv4_addr")
	brief.Timeout = ptr(time.Second)
	for table, first := range map[string]step{
		"byset":     add(brief, member("s", "10.0.0.1")),
		"byelement": add(set("s", "ipv4_addr", knftables.TimeoutFlag), member("s", "10.0.0.1 timeout 300ms")),
	} {
		t.Run(table, func(t *testing.T) {
			w.both(t, knftables.IPv4Family, table, func(nft knftables.Interface) string {
				try(t, nft, add(&knftables.Table{}), first, add(member("s", "10.0.0.9 timeout 1h")))
				tx := nft.NewTransaction()
				create(member("s", "10.0.0.1 timeout 2h"))(tx)
				aggregatortest.Eventually(t, "the element can be created again", func() bool {
					return nft.Check(aggregatortest.Context(t), tx) == nil
				})
				try(t, nft, create(member("s", "10.0.0.1 timeout 2h")))
				return ""
			})
			for _, ns := range []*nfttest.NS{w.real, w.weft} {
				out := list(t, ns, knftables.IPv4Family, table)
				if !strings.Contains(out, "10.0.0.9 timeout 1h") || !strings.Contains(out, "10.0.0.1 timeout 2h") {
					t.Errorf("elements are missing:\n%s", out)
				}
			}
		})
	}
}
