package admission

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Config has the context of the checks. The zero value accepts fragments of any publisher, but no
// durable ones.
type Config struct {
	// optional
	Access *access.Control
	// for the state directory: an existing excess over a limit may stay, as may strings and names
	// no longer accepted
	Stored bool
	// durable fragments can be stored
	Durable bool
	// returns why a durable fragment of n bytes cannot be stored; optional
	Room func(n int) error
	// returns nil for a new fragment; optional, called only if Access is set
	Status func(desired.Key) *weftv1.FragmentStatus
	// the daemon's, for messages
	Version string
	// nil means time.Now
	Now func() time.Time
}

// Scope finds the declarations of sets and maps outside an update.
type Scope interface {
	Set(table nft.TableID, name string) (*set.Set, bool)
}

// Builder turns the messages of an update into a [desired.Update]. Declarations are compiled at
// once, but rules in Finish, because they may refer to later declarations.
type Builder struct {
	packer
	snapshot bool
	priority int32
	lifetime weftv1.Lifetime
	expiry   time.Time
	outer    Scope
	// before this update
	own Declared

	tables []*tablePart
	byID   map[nft.TableID]*tablePart
	bad    violations
	file   sourceFile
	// messages of a snapshot
	parts int

	bytes, tableCount, chains, sets, rules, elements, objects int

	unpacked unpacked
	// in compiled rules
	anonymous atomic.Int64
	// before the update, or nil
	status *weftv1.FragmentStatus
}

// sender is the publisher of an update, with the checks that depend on it.
type sender struct {
	cfg Config
	key desired.Key
}

type tablePart struct {
	// without chains, sets and elements until Finish
	desired.TableUpdate
	sets      []*setPart
	setByName map[string]*setPart
	chains    []*chainPart
	// chains, objects and flowtables
	claimed map[object.Ref]bool
	// from a TablePatch
	changes []*elementsPart

	// guards Uses while rules are compiled
	mu sync.Mutex
}

// setPart is a declared set or map. Decl is nil if the declaration is invalid; its elements are
// then skipped.
type setPart struct {
	desired.Set
	chunks []*chunk
}

// chainPart is a declared chain with its uncompiled rules.
type chainPart struct {
	desired.Chain
	rules []nft.Rule
	// places are the indices of Rules in rules, -1 for a rule that is not the publisher's.
	places []int
}

type elementsPart struct {
	desired.Elements
	remove, add []*chunk
}

// NewSnapshot returns a Builder for a snapshot. An invalid fragment name is a violation, and Key
// returns it shortened.
func NewSnapshot(cfg Config, key desired.Key, outer Scope) *Builder {
	b := &Builder{packer: packer{sender: sender{cfg, key}}, snapshot: true, outer: outer, byID: make(map[nft.TableID]*tablePart)}
	if cfg.Access != nil && cfg.Status != nil {
		b.status = cfg.Status(key)
	}
	if err := CheckIdentity("fragment", key.Name); err != nil {
		b.key.Name = Clip(key.Name)
		b.Reject(weftv1.Violation_REASON_INVALID, err.Error())
	}
	return b
}

// NewPatch returns a Builder for a patch. own has the fragment's sets and maps.
func NewPatch(cfg Config, key desired.Key, own Declared, outer Scope) *Builder {
	b := NewSnapshot(cfg, key, outer)
	b.snapshot, b.own = false, own
	return b
}

// Key returns the updated fragment.
func (s *sender) Key() desired.Key { return s.key }

// Cost returns the number of elements and rules, including elements of anonymous sets and removals,
// after Finish.
func (b *Builder) Cost() int { return b.rules + b.elements + int(b.anonymous.Load()) }

// Reject adds a violation of the whole update.
func (b *Builder) Reject(reason weftv1.Violation_Reason, message string) {
	b.bad.add(reason, nil, message)
}

// RejectSize adds the violation for an error of [Size.Check].
func (b *Builder) RejectSize(err error) {
	if r := (*access.Refusal)(nil); errors.As(err, &r) {
		b.bad.refused(nil, r)
		return
	}
	b.Reject(weftv1.Violation_REASON_LIMIT, err.Error())
}

// Wait waits for all goroutines of an abandoned Builder.
func (b *Builder) Wait() { b.pool.wg.Wait() }

func (b *Builder) table(family, name string) *tablePart {
	f, err := nft.ParseFamily(family)
	if err == nil {
		family, err = f.String(), b.checkName(name)
	}
	if err != nil {
		b.bad.add(weftv1.Violation_REASON_INVALID, &weftv1.ObjectName{Kind: "table", Family: Clip(family), Table: Clip(name)}, err.Error())
		return nil
	}
	id := nft.TableID{Family: f, Name: name}
	t := b.byID[id]
	if t == nil && b.count(&b.tableCount, 1, MaxTables, "tables") {
		t = &tablePart{TableUpdate: desired.TableUpdate{Table: id}}
		b.byID[id] = t
		b.tables = append(b.tables, t)
	}
	return t
}

// count adds by to n, and a violation for the first excess.
func (b *Builder) count(n *int, by, limit int, what string) bool {
	was := *n
	*n += by
	if *n <= limit {
		return true
	}
	if was <= limit {
		b.Reject(weftv1.Violation_REASON_LIMIT, fmt.Sprintf("the update has more than %d %s: split it into several fragments", limit, what))
	}
	return false
}

// Finish returns the update. It must be called once, after the last message.
//
// Possible errors: *RejectedError.
func (b *Builder) Finish() (*desired.Update, error) {
	b.pool.wait()
	b.compileRules()
	b.checkRights()
	u := &desired.Update{Fragment: b.key, Snapshot: b.snapshot, Priority: b.priority, Lifetime: desired.Lifetime(b.lifetime), Expires: b.expiry}
	for _, t := range b.tables {
		u.Tables = append(u.Tables, t.update(&b.bad))
	}
	if b.cfg.Room != nil && b.lifetime == weftv1.Lifetime_LIFETIME_DURABLE && b.cfg.Durable && len(u.Tables) > 0 && len(b.bad.list) == 0 {
		if err := b.cfg.Room(b.bytes); err != nil {
			b.Reject(weftv1.Violation_REASON_LIMIT, NoRoom(err))
		}
	}
	if err := b.bad.err(b.key); err != nil {
		return nil, err
	}
	return u, nil
}

// NoRoom returns the message for a durable fragment that cannot be stored.
func NoRoom(err error) string {
	return fmt.Sprintf("cannot store a durable fragment in the state directory: %v: free some space, or use another lifetime", err)
}

// Recompile compiles the rules of a finished update against the current declarations of other
// fragments.
//
// Possible errors: *RejectedError.
func (b *Builder) Recompile(u *desired.Update, outer Scope) (*desired.Update, error) {
	b.outer = outer
	b.anonymous.Store(0)
	for _, t := range b.tables {
		t.Uses = nil
	}
	b.compileRules()
	// The class of a rule depends on declarations.
	b.checkRights()
	if err := b.bad.err(b.key); err != nil {
		return nil, err
	}
	again := *u
	again.Tables = slices.Clone(u.Tables)
	for i, t := range b.tables {
		again.Tables[i].PutChains, again.Tables[i].Uses = t.putChains(), t.Uses
	}
	return &again, nil
}

func (t *tablePart) putChains() []desired.Chain {
	put := make([]desired.Chain, 0, len(t.chains))
	for _, c := range t.chains {
		put = append(put, c.Chain)
	}
	return put
}

func (t *tablePart) update(bad *violations) desired.TableUpdate {
	u := t.TableUpdate
	u.PutChains = t.putChains()
	for _, s := range t.sets {
		if put := s.Set; put.Decl != nil {
			put.Elements = join(bad, s.chunks)
			if put.Decl.Ranges() {
				slices.SortStableFunc(put.Elements, set.Compare)
				put.Elements = slices.Compact(put.Elements)
			}
			u.PutSets = append(u.PutSets, put)
		}
	}
	for _, e := range t.changes {
		change := e.Elements
		change.Remove, change.Add = join(bad, e.remove), join(bad, e.add)
		for _, c := range e.add {
			change.Remove = append(change.Remove, c.expired...)
		}
		u.Elements = append(u.Elements, change)
	}
	return u
}

// join also moves the violations to bad.
func join(bad *violations, chunks []*chunk) []set.Element {
	n := 0
	for _, c := range chunks {
		bad.merge(&c.bad)
		n += len(c.out)
	}
	if len(chunks) == 1 {
		return chunks[0].out
	}
	if n == 0 {
		return nil
	}
	all := make([]set.Element, 0, n)
	for _, c := range chunks {
		all = append(all, c.out...)
		// The Builder stays in memory until the update is answered.
		c.out = nil
	}
	return all
}
