package aggregatortest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Kernel is nf_tables in memory. Its zero value is ready for concurrent use. Refusals have the real
// kernel's errno. It runs no rules.
type Kernel struct {
	// Refuse can refuse an op with the errno and text of a *kernel.BatchError. The lock is held.
	Refuse func(op kernel.Op) (errno syscall.Errno, text string)

	// RefuseDump can make DumpSet fail. The lock is held.
	RefuseDump func() error

	// RefuseBatch can refuse a whole batch. The lock is held.
	RefuseBatch func(ops []kernel.Op) error

	mu      sync.Mutex
	tables  map[nft.TableID]*table
	handles uint64
	commits [][]kernel.Op
	// fail holds errors for the next commits; an applied commit takes effect all the same
	fail    []failure
	owned   error
	changes chan kernel.Event
}

type failure struct {
	err     error
	applied bool
}

type table struct {
	comment string
	dormant bool
	// each *chain, *set, *object.Object and *object.Flowtable by kind and name, such as "chain
	// input"
	items map[string]any
}

func newTable(comment string) *table { return &table{comment: comment, items: make(map[string]any)} }

func item[T any](t *table, name string) *T {
	if t == nil {
		return nil
	}
	it, _ := t.items[name].(*T)
	return it
}

type chain struct {
	decl  *object.Chain
	rules []rule
}

type rule struct {
	handle uint64
	rule   *compile.Rule
	owner  string
}

type set struct {
	decl     *nftset.Set
	elements map[string]nftset.Element
}

// FailNext makes the next commit return err, or a later one after earlier calls. If applied is
// true, the commit takes effect, unless the batch is refused.
func (k *Kernel) FailNext(err error, applied bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = append(k.fail, failure{err, applied})
}

// SetOwned makes Adopt fail with err; nil makes it succeed.
func (k *Kernel) SetOwned(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owned = err
}

// Commits returns the ops of all commits with effect.
func (k *Kernel) Commits() [][]kernel.Op {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.commits)
}

// Flush removes all tables, as another program might.
func (k *Kernel) Flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tables = nil
	if k.changes != nil {
		k.changes <- kernel.Event{Reason: kernel.Deleted, PID: 1, Process: "nft"}
	}
}

// Watch reports Flush.
func (k *Kernel) Watch(context.Context) (<-chan kernel.Event, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes = make(chan kernel.Event, 16)
	return k.changes, nil
}

// Elements returns the elements of a set or map as "key" or "key : data", sorted; nil without the
// set.
func (k *Kernel) Elements(id nft.TableID, name string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := item[set](k.tables[id], "set "+name)
	if s == nil {
		return nil
	}
	out := []string{}
	for _, e := range s.elements {
		text := s.decl.FormatKey(e)
		if s.decl.Map {
			text += " : " + s.decl.FormatData(e)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// Rules returns the text of a chain's rules, or nil without the chain.
func (k *Kernel) Rules(id nft.TableID, name string) []string {
	return ofRules(k, id, name, func(r rule) string { return r.rule.Text })
}

// Handles returns the handles of a chain's rules.
func (k *Kernel) Handles(id nft.TableID, name string) []uint64 {
	return ofRules(k, id, name, func(r rule) uint64 { return r.handle })
}

func ofRules[T any](k *Kernel, id nft.TableID, name string, f func(rule) T) []T {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := item[chain](k.tables[id], "chain "+name)
	if c == nil {
		return nil
	}
	out := []T{}
	for _, r := range c.rules {
		out = append(out, f(r))
	}
	return out
}

// Commit carries out all ops, or fails.
func (k *Kernel) Commit(ops []kernel.Op) (kernel.Stats, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var f failure
	if len(k.fail) > 0 {
		f, k.fail = k.fail[0], k.fail[1:]
		if !f.applied {
			return kernel.Stats{}, f.err
		}
	}
	b, err := k.try(ops)
	if err != nil {
		return kernel.Stats{}, err
	}
	k.tables, k.handles = b.tables, b.handles
	k.commits = append(k.commits, slices.Clone(ops))
	if f.err != nil {
		return kernel.Stats{}, f.err
	}
	for h, n := range b.assigned {
		h.N = n
	}
	return kernel.Stats{Messages: len(ops)}, nil
}

func clone(tables map[nft.TableID]*table) map[nft.TableID]*table {
	out := make(map[nft.TableID]*table, len(tables))
	for id, t := range tables {
		n := newTable(t.comment)
		n.dormant = t.dormant
		for name, it := range t.items {
			switch o := it.(type) {
			case *chain:
				it = &chain{decl: o.decl, rules: slices.Clone(o.rules)}
			case *set:
				it = &set{decl: o.decl, elements: maps.Clone(o.elements)}
			}
			n.items[name] = it
		}
		out[id] = n
	}
	return out
}

// Dump returns all tables.
func (k *Kernel) Dump() ([]kernel.Table, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []kernel.Table
	for id, t := range k.tables {
		d := kernel.Table{ID: id, Comment: t.comment, Owned: true, Dormant: t.dormant}
		for _, name := range slices.Sorted(maps.Keys(t.items)) {
			switch it := t.items[name].(type) {
			case *chain:
				c := kernel.Chain{Decl: it.decl}
				for _, r := range it.rules {
					c.Rules = append(c.Rules, kernel.Rule{
						Handle: &kernel.Handle{N: r.handle},
						Info:   userdata.RuleInfo{Comment: r.rule.Comment, Fingerprint: r.rule.Fingerprint, Owner: r.owner, Ours: true},
						Writes: r.rule.Writes,
					})
				}
				d.Chains = append(d.Chains, c)
			case *set:
				d.Sets = append(d.Sets, kernel.Set{Decl: it.decl, Elements: slices.Collect(maps.Values(it.elements))})
			case *object.Object:
				d.Objects = append(d.Objects, it)
			case *object.Flowtable:
				d.Flowtables = append(d.Flowtables, it)
			}
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b kernel.Table) int {
		return cmp.Or(cmp.Compare(a.ID.Family, b.ID.Family), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return out, nil
}

// Adopt is Dump, unless SetOwned said otherwise.
func (k *Kernel) Adopt() ([]kernel.Table, error) {
	k.mu.Lock()
	owned := k.owned
	k.mu.Unlock()
	if owned != nil {
		return nil, owned
	}
	return k.Dump()
}

// Empty reports whether there is no table.
func (k *Kernel) Empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.tables) == 0
}

// String dumps the ruleset as sorted text.
func (k *Kernel) String() string {
	dump, _ := k.Dump()
	var b strings.Builder
	for _, t := range dump {
		fmt.Fprintf(&b, "table %s\n", t.ID)
		for _, c := range t.Chains {
			fmt.Fprintf(&b, "  chain %s\n", c.Decl.Name)
			for _, r := range k.Rules(t.ID, c.Decl.Name) {
				b.WriteString("    " + r + "\n")
			}
		}
		for _, d := range t.Sets {
			fmt.Fprintf(&b, "  set %s\n", d.Decl.Name)
			for _, e := range k.Elements(t.ID, d.Decl.Name) {
				b.WriteString("    " + e + "\n")
			}
		}
	}
	return b.String()
}
