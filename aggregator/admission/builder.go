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
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
)

// Config describes what updates are checked against. The zero value accepts
// fragments of any publisher, but no durable ones.
type Config struct {
	// Access has the rights and limits of publishers. If it is nil, there are
	// none.
	Access *access.Control
	// Stored is true for updates of the state directory: they need the rights of their
	// publishers, but what is over a limit already may stay, and so may strings and names
	// that are not accepted any more.
	Stored bool
	// Durable is true if durable fragments can be stored.
	Durable bool
	// Room returns why a durable fragment of n bytes cannot be stored. If it is
	// nil, storage is not checked.
	Room func(n int) error
	// Status returns the status of a fragment, or nil if there is no such
	// fragment. It may be nil. It is called only if Access is set.
	Status func(desired.Key) *weftv1.FragmentStatus
	// Version is the daemon's version, for messages.
	Version string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Scope finds the declarations of sets and maps outside an update.
type Scope interface {
	Set(table nft.TableID, name string) (*set.Set, bool)
}

// Builder turns the messages of one update into a [desired.Update]. Messages
// are added as they arrive. Declarations are compiled at once. Elements are
// packed by goroutines while the next message is decoded. Rules are compiled by
// Finish, because only then is everything known that they may refer to.
type Builder struct {
	cfg      Config
	key      desired.Key
	snapshot bool
	priority int32
	lifetime weftv1.Lifetime
	expiry   time.Time
	// outer finds the declarations that the update does not make.
	outer Scope
	// own has the fragment's declarations before this update.
	own Declared

	tables []*tablePart
	byID   map[nft.TableID]*tablePart
	bad    violations
	// file is the .nft text that the update comes from, or "".
	file string
	// parts counts the messages of a snapshot.
	parts int

	bytes, tableCount, chains, sets, rules, elements, objects int

	unpacked unpacked
	// anonymous counts the elements of anonymous sets of the rules that are compiled.
	anonymous atomic.Int64
	// positionsMu guards positions, which has where the rules of file are. It is made for
	// the first wrong rule, because each would parse the file again.
	positionsMu sync.Mutex
	positions   *ruleset.Positions
	// status is the fragment's status before the update, or nil.
	status *weftv1.FragmentStatus

	pool pool
}

// tablePart is the part of an update in one table.
type tablePart struct {
	// TableUpdate has all but chains, sets and elements, which Finish adds.
	desired.TableUpdate
	sets      []*setPart
	setByName map[string]*setPart
	chains    []*chainPart
	// claimed has the chains, objects and flowtables that are declared, to find repeats.
	claimed map[object.Ref]bool
	// changes come from a TablePatch.
	changes []*elementsPart

	// mu guards Uses while rules are compiled.
	mu sync.Mutex
}

// setPart is a set or map that the update declares. Decl is nil if the declaration is
// invalid. Then its elements are skipped.
type setPart struct {
	desired.Set
	chunks []*chunk
}

// chainPart is a chain that the update declares, with its rules before they are
// compiled.
type chainPart struct {
	desired.Chain
	rules []nft.Rule
}

// elementsPart is a change of the elements of a declared set.
type elementsPart struct {
	desired.Elements
	remove, add []*chunk
}

// NewSnapshot returns a Builder for a snapshot of a fragment. If the name of the
// fragment is invalid, that is a violation, and Key returns it shortened.
func NewSnapshot(cfg Config, key desired.Key, outer Scope) *Builder {
	b := &Builder{cfg: cfg, key: key, snapshot: true, outer: outer, byID: make(map[nft.TableID]*tablePart)}
	if cfg.Access != nil && cfg.Status != nil {
		b.status = cfg.Status(key)
	}
	if err := CheckIdentity("fragment", key.Name); err != nil {
		b.key.Name = Clip(key.Name)
		b.Reject(weftv1.Violation_REASON_INVALID, err.Error())
	}
	return b
}

// NewPatch returns a Builder for a patch of a fragment that declares the sets and
// maps in own; outer finds those of others.
func NewPatch(cfg Config, key desired.Key, own Declared, outer Scope) *Builder {
	b := NewSnapshot(cfg, key, outer)
	b.snapshot, b.own = false, own
	return b
}

// Key returns the fragment that the update is for.
func (b *Builder) Key() desired.Key { return b.key }

// Cost returns the number of elements and rules in the update, those of anonymous sets
// and removals of elements included. Call it after Finish.
func (b *Builder) Cost() int { return b.rules + b.elements + int(b.anonymous.Load()) }

// Reject adds a violation of the whole update.
func (b *Builder) Reject(reason weftv1.Violation_Reason, message string) {
	b.bad.add(reason, nil, message)
}

// RejectSize adds the violation that a message is too large, which [Size.Check]
// returned.
func (b *Builder) RejectSize(err error) {
	if r := (*access.Refusal)(nil); errors.As(err, &r) {
		b.bad.refused(nil, r)
		return
	}
	b.Reject(weftv1.Violation_REASON_LIMIT, err.Error())
}

// Wait returns after all goroutines of the Builder have ended. Finish does the
// same: Wait is for updates that are given up.
func (b *Builder) Wait() { b.pool.wg.Wait() }

// table returns the update's part in a table. If the family or name is not valid, or there
// are too many tables, it adds a violation and returns nil.
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

// count adds to a counter of the update and reports whether it stays within
// the limit. The first time that it does not, count adds a violation.
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

// Finish waits for the packing of elements, compiles the rules and returns the
// update. It is called once, after the last message was added.
//
// Possible errors: *RejectedError.
func (b *Builder) Finish() (*desired.Update, error) {
	b.pool.wait()
	b.compileRules()
	b.checkRights()
	u := &desired.Update{Fragment: b.key, Snapshot: b.snapshot, Priority: b.priority, Lifetime: desired.Lifetime(b.lifetime), Expires: b.expiry}
	for _, t := range b.tables {
		u.Tables = append(u.Tables, b.tableUpdate(t))
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

// NoRoom returns the message of a violation: a durable fragment cannot be
// stored because of err.
func NoRoom(err error) string {
	return fmt.Sprintf("cannot store a durable fragment in the state directory: %v: free some space, or use another lifetime", err)
}

// Recompile compiles the rules of an update that Finish has returned again, against
// the present declarations of other fragments.
//
// Possible errors: *RejectedError.
func (b *Builder) Recompile(u *desired.Update, outer Scope) (*desired.Update, error) {
	b.outer = outer
	b.anonymous.Store(0)
	for _, t := range b.tables {
		t.Uses = nil
	}
	b.compileRules()
	// The class of a rule depends on the declarations that it refers to.
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

// putChains returns the chains that a table's part declares.
func (t *tablePart) putChains() []desired.Chain {
	put := make([]desired.Chain, 0, len(t.chains))
	for _, c := range t.chains {
		put = append(put, c.Chain)
	}
	return put
}

// tableUpdate assembles a table's part and collects the violations of its
// elements.
func (b *Builder) tableUpdate(t *tablePart) desired.TableUpdate {
	u := t.TableUpdate
	u.PutChains = t.putChains()
	for _, s := range t.sets {
		if put := s.Set; put.Decl != nil {
			put.Elements = b.join(s.chunks)
			if put.Decl.Ranges() {
				slices.SortStableFunc(put.Elements, set.Compare)
				put.Elements = slices.Compact(put.Elements)
			}
			u.PutSets = append(u.PutSets, put)
		}
	}
	for _, e := range t.changes {
		change := e.Elements
		change.Remove, change.Add = b.join(e.remove), b.join(e.add)
		for _, c := range e.add {
			change.Remove = append(change.Remove, c.expired...)
		}
		u.Elements = append(u.Elements, change)
	}
	return u
}

// join concatenates packed chunks in the order of the request.
func (b *Builder) join(chunks []*chunk) []set.Element {
	n := 0
	for _, c := range chunks {
		b.bad.merge(&c.bad)
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
