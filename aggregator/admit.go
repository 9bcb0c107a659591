package aggregator

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/syntax"
)

// admission turns the messages of one update into a desired.Update. Parts are
// added as they arrive: declarations are compiled at once, elements are packed
// by goroutines while the next part is decoded, rules are compiled at the end,
// when everything that they may refer to is known.
type admission struct {
	key      desired.Key
	snapshot bool
	priority int32
	lifetime weftv1.Lifetime
	// stateful is true where durable fragments can be stored.
	stateful bool
	// room returns why no durable fragment of so many bytes can be stored; nil
	// does not ask.
	room func(bytes int) error
	// outer finds the declarations of what the update itself does not declare.
	outer lookup
	// own has the fragment's declarations before this update.
	own declarations

	tables []*tableAdmission
	byID   map[nft.TableID]*tableAdmission
	bad    violations
	// file is the .nft text that the update comes from, if it does.
	file string

	bytes, chains, sets, rules, elements, objects int

	// access has the rights of the publisher; nil where it has no limits.
	access  *access.Control
	brought brought
	// held is the status of the fragment before the update; nil where it is
	// new.
	held *weftv1.FragmentStatus

	pool packers
}

// lookup finds declarations outside an update.
type lookup interface {
	// set returns the declaration of a named set or map.
	set(table nft.TableID, name string) (*compile.Set, bool)
}

// tableAdmission is the part of an update in one table.
type tableAdmission struct {
	id      nft.TableID
	comment string
	dormant bool
	objectsAdmission
	// conntrack and affinity are the names of maps that are more than maps.
	conntrack map[string]bool
	affinity  map[string]bool
	sets      []*setAdmission
	setByName map[string]*setAdmission
	chains    []*chainAdmission
	chainName map[string]bool
	// deleteChains, deleteSets and patches are those of a TablePatch.
	deleteChains, deleteSets []string
	patches                  []*elementsAdmission

	// uses are the declarations from outside that rules were compiled against.
	mu   sync.Mutex
	uses map[string]*compile.Set
}

// setAdmission is a set that the update declares.
type setAdmission struct {
	// source is the declaration as it was written, without elements.
	source nft.Set
	// decl is nil where the declaration is wrong: elements are skipped.
	decl   *compile.Set
	chunks []*chunk
}

// chainAdmission is a chain that the update declares.
type chainAdmission struct {
	// source is the declaration as it was written, without rules.
	source nft.Chain
	decl   *compile.Chain
	rules  []nft.Rule
	out    []*compile.Rule
}

// elementsAdmission is a change of a declared set's elements.
type elementsAdmission struct {
	set         string
	decl        *compile.Set
	remove, add []*chunk
}

func (a *Aggregator) newAdmission(key desired.Key, snapshot bool, own declarations, outer lookup) *admission {
	adm := newAdmission(key, snapshot, own, outer, a.cfg.StateDir != "")
	adm.room = a.durables.room
	if adm.access = a.cfg.Access; adm.access != nil {
		adm.held = a.writer.book.get(key)
	}
	return adm
}

func newAdmission(key desired.Key, snapshot bool, own declarations, outer lookup, stateful bool) *admission {
	return &admission{
		stateful: stateful,
		key:      key, snapshot: snapshot, own: own, outer: outer,
		byID: make(map[nft.TableID]*tableAdmission),
	}
}

// table returns the update's part in a table.
func (a *admission) table(id nft.TableID) *tableAdmission {
	t := a.byID[id]
	if t == nil {
		t = &tableAdmission{id: id}
		a.byID[id] = t
		a.tables = append(a.tables, t)
	}
	return t
}

// identify validates a table's family and name.
func (a *admission) identify(family, name string) (nft.TableID, bool) {
	f, err := nft.ParseFamily(family)
	if err != nil {
		a.bad.add(weftv1.Reason_REASON_INVALID, "table "+clip(name), err.Error())
		return nft.TableID{}, false
	}
	id := nft.TableID{Family: f, Name: name}
	if err := checkName(name); err != nil {
		a.bad.add(weftv1.Reason_REASON_INVALID, "table "+f.String()+" "+clip(name), err.Error())
		return id, false
	}
	return id, true
}

// count charges an update against a limit; false means that it is exceeded,
// which is reported once.
func (a *admission) count(n *int, by, limit int, what string) bool {
	was := *n
	*n += by
	if *n <= limit {
		return true
	}
	if was <= limit {
		a.bad.add(weftv1.Reason_REASON_LIMIT, "", fmt.Sprintf("the update has more than %d %s: split it into several fragments", limit, what))
	}
	return false
}

// finish waits for the packers, compiles the rules and returns the update. The
// error is a *RejectedError.
func (a *admission) finish() (*desired.Update, error) {
	a.pool.wait()
	a.compileRules()
	a.guard()
	u := &desired.Update{Fragment: a.key, Snapshot: a.snapshot, Priority: a.priority}
	for _, t := range a.tables {
		u.Tables = append(u.Tables, a.tableUpdate(t))
	}
	if a.room != nil && a.lifetime == weftv1.Lifetime_LIFETIME_DURABLE && a.stateful && len(u.Tables) > 0 && len(a.bad.list) == 0 {
		if err := a.room(a.bytes); err != nil {
			a.bad.add(weftv1.Reason_REASON_LIMIT, "", noRoom(err))
		}
	}
	if err := a.bad.err(a.key); err != nil {
		return nil, err
	}
	return u, nil
}

// recompile returns the update with its rules compiled against other
// declarations: those have changed since it was admitted.
func (a *admission) recompile(u *desired.Update, outer lookup) (*desired.Update, error) {
	a.outer = outer
	for _, t := range a.tables {
		t.uses = nil
	}
	a.compileRules()
	if err := a.bad.err(a.key); err != nil {
		return nil, err
	}
	again := *u
	again.Tables = slices.Clone(u.Tables)
	for i, t := range a.tables {
		put := make([]desired.Chain, 0, len(t.chains))
		for _, c := range t.chains {
			put = append(put, desired.Chain{Decl: c.decl, Rules: c.out})
		}
		again.Tables[i].PutChains, again.Tables[i].Uses = put, t.uses
	}
	return &again, nil
}

// tableUpdate assembles a table's part, and collects its elements' violations.
func (a *admission) tableUpdate(t *tableAdmission) desired.TableUpdate {
	u := desired.TableUpdate{
		Table: t.id, Comment: t.comment, Dormant: t.dormant, DeleteChains: t.deleteChains, DeleteSets: t.deleteSets, Uses: t.uses,
		PutObjects: t.objects, DeleteObjects: t.deleteObjects, PutFlowtables: t.flowtables, DeleteFlowtables: t.deleteFlowtables,
	}
	for _, c := range t.chains {
		u.PutChains = append(u.PutChains, desired.Chain{Decl: c.decl, Rules: c.out})
	}
	for _, s := range t.sets {
		if s.decl != nil {
			u.PutSets = append(u.PutSets, desired.Set{
				Decl: s.decl, Elements: a.join(s.chunks), Conntrack: t.conntrack[s.source.Name], Affinity: t.affinity[s.source.Name],
			})
		}
	}
	a.checkMaps(t, "conntrack_maps", t.conntrack, a.own.conntrackMaps(t.id))
	a.checkMaps(t, "affinity_maps", t.affinity, a.own.affinityMaps(t.id))
	for _, e := range t.patches {
		u.Elements = append(u.Elements, desired.Elements{Set: e.set, Decl: e.decl, Remove: a.join(e.remove), Add: a.join(e.add)})
	}
	return u
}

// checkMaps reports the names in a field of maps that are not those of maps. What
// the fragment has named before stays in force in patches.
func (a *admission) checkMaps(t *tableAdmission, field string, names, before map[string]bool) {
	var unknown []string
	for name := range names {
		s := t.setByName[name]
		if known := s != nil && (s.decl == nil || s.decl.Map); !known && (a.snapshot || !before[name]) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		a.bad.add(weftv1.Reason_REASON_REFERENCE, "table "+t.id.String(), fmt.Sprintf("%s names %q: the fragment has no such map", field, clip(name)))
	}
}

// join concatenates packed chunks in the order of the request.
func (a *admission) join(chunks []*chunk) []compile.Element {
	n := 0
	for _, c := range chunks {
		a.bad.merge(&c.bad)
		n += len(c.out)
	}
	if len(chunks) == 1 {
		return chunks[0].out
	}
	if n == 0 {
		return nil
	}
	all := make([]compile.Element, 0, n)
	for _, c := range chunks {
		all = append(all, c.out...)
		// The admission stays until the update is answered.
		c.out = nil
	}
	return all
}

// compileRules compiles all rules, in parallel where there are many.
func (a *admission) compileRules() {
	type job struct {
		t *tableAdmission
		c *chainAdmission
	}
	var jobs []job
	for _, t := range a.tables {
		for _, c := range t.chains {
			if len(c.rules) > 0 {
				jobs = append(jobs, job{t, c})
			}
		}
	}
	bad := make([]violations, len(jobs))
	work := func(from, step int) {
		for i := from; i < len(jobs); i += step {
			a.compileChain(jobs[i].t, jobs[i].c, &bad[i])
		}
	}
	if workers := runtime.GOMAXPROCS(0); workers > 1 && a.rules >= parallelRules {
		for w := range workers {
			a.pool.spawn(func() { work(w, workers) })
		}
		a.pool.wait()
	} else {
		work(0, 1)
	}
	for i := range bad {
		a.bad.merge(&bad[i])
	}
}

// parallelRules is the number of rules from which goroutines pay.
const parallelRules = 64

// compileChain compiles the rules of one chain.
func (a *admission) compileChain(t *tableAdmission, c *chainAdmission, bad *violations) {
	scope := ruleScope{a: a, t: t}
	c.out = make([]*compile.Rule, 0, len(c.rules))
	for i, r := range c.rules {
		if bad.full() {
			return
		}
		object := func() string { return fmt.Sprintf("table %s chain %s rule %d", t.id, c.decl.Name, i+1) }
		if len(r.Text) > MaxRuleText {
			bad.add(weftv1.Reason_REASON_LIMIT, object(), fmt.Sprintf("text has %d bytes: at most %d are allowed", len(r.Text), MaxRuleText))
			continue
		}
		out, err := compile.CompileRule(t.id.Family, r, scope)
		if err != nil {
			bad.compile(object(), a.inFile(t.id, c.decl.Name, i, scope, err))
			continue
		}
		c.out = append(c.out, out)
	}
}

// inFile returns the error of a rule as one about the file that it comes from.
// A file's rules are compiled in canonical form; only for an error is it worth
// to look for what the author wrote.
func (a *admission) inFile(table nft.TableID, chain string, n int, scope compile.Scope, err error) error {
	if a.file == "" {
		return err
	}
	src, ok := syntax.FindRule(a.file, table, chain, n)
	if !ok {
		return err
	}
	_, again := compile.CompileRule(table.Family, nft.Rule{Text: src.Text}, scope)
	at := (*syntax.Error)(nil)
	if !errors.As(again, &at) {
		return err
	}
	return src.Error(at)
}

// ruleScope is what a rule of one table sees: first what this update declares,
// then what the fragment has, then everybody's.
type ruleScope struct {
	a *admission
	t *tableAdmission
}

// Set implements compile.Scope.
func (s ruleScope) Set(name string) (*compile.Set, bool) {
	if d := s.t.setByName[name]; d != nil {
		return d.decl, d.decl != nil
	}
	if !s.a.snapshot {
		if d, ok := s.a.own.set(s.t.id, name); ok {
			s.t.use(name, d)
			return d, true
		}
	}
	d, ok := s.a.outer.set(s.t.id, name)
	if ok {
		s.t.use(name, d)
	}
	return d, ok
}

// use notes that a rule was compiled against a declaration that the update does
// not make.
func (t *tableAdmission) use(name string, d *compile.Set) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uses == nil {
		t.uses = make(map[string]*compile.Set)
	}
	t.uses[name] = d
}

// Chain implements compile.Scope. Whether a chain exists is decided when the
// fragments are merged.
func (s ruleScope) Chain(string) bool { return true }

// Object implements compile.Scope, as Chain does.
func (s ruleScope) Object(nft.ObjectKind, string) bool { return true }

// Flowtable implements compile.Scope, as Chain does.
func (s ruleScope) Flowtable(string) bool { return true }

// clip shortens a name for a message.
func clip(s string) string {
	if len(s) > 64 {
		return fmt.Sprintf("%.64s...", s)
	}
	return s
}
