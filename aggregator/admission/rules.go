package admission

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// from this number on, parallel compilation is faster
const parallelRules = 64

func (b *Builder) compileRules() {
	type job struct {
		t *tablePart
		c *chainPart
	}
	var jobs []job
	for _, t := range b.tables {
		for _, c := range t.chains {
			// A base chain may get a first rule (honouring).
			if len(c.rules) > 0 || c.Decl != nil && c.Decl.Base != nil {
				jobs = append(jobs, job{t, c})
			}
		}
	}
	bad := make([]violations, len(jobs))
	work := func(from, step int) {
		for i := from; i < len(jobs); i += step {
			ruleScope{b, jobs[i].t}.compile(jobs[i].c, &bad[i])
		}
	}
	if workers := runtime.GOMAXPROCS(0); workers > 1 && b.rules >= parallelRules {
		for w := range workers {
			b.pool.spawn(func() { work(w, workers) })
		}
		b.pool.wait()
	} else {
		work(0, 1)
	}
	for i := range bad {
		b.bad.merge(&bad[i])
	}
}

func (s ruleScope) compile(c *chainPart, bad *violations) {
	b, t := s.b, s.t
	publisher := b.cfg.Access.Publisher(b.key.Publisher)
	c.Rules, c.places = make([]*compile.Rule, 0, len(c.rules)), make([]int, 0, len(c.rules))
	for i, r := range c.rules {
		if bad.full() {
			return
		}
		object := func() *weftv1.ObjectName { return ruleName(t.Table, c.Decl.Name, i) }
		if len(r.Text) > MaxRuleText {
			bad.add(weftv1.Violation_REASON_LIMIT, object(), textTooLong(r.Text))
			continue
		}
		rule, err := compile.CompileRule(t.Table.Family, r, s)
		if err != nil {
			bad.compile(object(), b.file.place(t.Table, c.Decl.Name, i, s, err))
			continue
		}
		// Only the canonical text has no tabs and line ends between words.
		if err := cmp.Or(b.checkText(rule.Text), b.checkText(rule.Comment)); err != nil {
			bad.add(weftv1.Violation_REASON_INVALID, object(), err.Error())
			continue
		}
		if rule, err = honoured(publisher, rule, s); err != nil {
			bad.compile(object(), err)
			continue
		}
		if !b.countAnonymous(rule, object, bad) {
			return
		}
		c.Rules, c.places = append(c.Rules, rule), append(c.places, i)
	}
	switch head, err := honouring(publisher, t.Table.Family, c.Decl); {
	case err != nil:
		bad.compile(ObjectName(t.Table, "chain", c.Decl.Name), err)
	case head != nil && (len(c.Rules) == 0 || c.Rules[0].Fingerprint != head.Fingerprint):
		c.Rules, c.places = slices.Insert(c.Rules, 0, head), slices.Insert(c.places, 0, -1)
	}
}

// countAnonymous counts the elements of a rule's anonymous sets. False stops compilation.
func (b *Builder) countAnonymous(r *compile.Rule, object func() *weftv1.ObjectName, bad *violations) bool {
	n := 0
	for i := range r.Anonymous {
		n += len(r.Anonymous[i].Elements)
	}
	if n == 0 {
		return true
	}
	p := b.limited()
	sum := int(b.anonymous.Add(int64(n)))
	if p == nil || uint64(sum) <= b.status.GetElements() { //nolint:gosec // a count
		return true
	}
	refusal := p.Brings(access.LimitElements, sum)
	bad.refused(object(), refusal)
	return refusal == nil
}

func textTooLong(text string) string {
	return fmt.Sprintf("text has %d bytes: at most %d are allowed", len(text), MaxRuleText)
}

// sourceFile is the .nft text of an update, or empty.
type sourceFile struct {
	text string

	// mu guards positions, the places of the rules, made for the first wrong rule.
	mu        sync.Mutex
	positions *ruleset.Positions
}

// place adds the place in the file to a rule's error. Rules of a file are compiled in canonical
// form, so the author's text is compiled again.
func (f *sourceFile) place(table nft.TableID, chain string, n int, scope compile.Scope, err error) error {
	if f.text == "" {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.positions == nil {
		_, f.positions, _ = ruleset.ParsePositions("", f.text)
	}
	src, ok := f.positions.Rule(table, chain, n)
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

// ruleScope resolves references in the update, then in the fragment, then in the outer scope.
type ruleScope struct {
	b *Builder
	t *tablePart
}

func (s ruleScope) Set(name string) (*set.Set, bool) {
	if d := s.t.setByName[name]; d != nil {
		return d.Decl, d.Decl != nil
	}
	d, ok := s.b.own.Set(s.t.Table, name)
	if !ok {
		d, ok = s.b.outer.Set(s.t.Table, name)
	}
	if ok {
		s.t.use(name, d)
	}
	return d, ok
}

// use records a declaration outside the update.
func (t *tablePart) use(name string, d *set.Set) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Uses == nil {
		t.Uses = make(map[string]*set.Set)
	}
	t.Uses[name] = d
}

// Chain returns true: the merge of the fragments checks whether the chain exists.
func (s ruleScope) Chain(string) bool { return true }

func (s ruleScope) Object(nft.ObjectKind, string) bool { return true }

func (s ruleScope) Flowtable(string) bool { return true }
