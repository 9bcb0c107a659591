package knft_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// step is a part of a transaction.
type step func(tx *knftables.Transaction)

func add(objects ...knftables.Object) step    { return each((*knftables.Transaction).Add, objects) }
func create(objects ...knftables.Object) step { return each((*knftables.Transaction).Create, objects) }
func insert(objects ...knftables.Object) step { return each((*knftables.Transaction).Insert, objects) }
func replace(objects ...knftables.Object) step {
	return each((*knftables.Transaction).Replace, objects)
}
func flush(objects ...knftables.Object) step  { return each((*knftables.Transaction).Flush, objects) }
func remove(objects ...knftables.Object) step { return each((*knftables.Transaction).Delete, objects) }
func destroy(objects ...knftables.Object) step {
	return each((*knftables.Transaction).Destroy, objects)
}

func each(do func(*knftables.Transaction, knftables.Object), objects []knftables.Object) step {
	return func(tx *knftables.Transaction) {
		for _, o := range objects {
			do(tx, o)
		}
	}
}

func steps(all ...step) step {
	return func(tx *knftables.Transaction) {
		for _, s := range all {
			s(tx)
		}
	}
}

func run(t *testing.T, nft knftables.Interface, all ...step) error {
	t.Helper()
	tx := nft.NewTransaction()
	steps(all...)(tx)
	return nft.Run(aggregatortest.Context(t), tx)
}

func must(t *testing.T, nft knftables.Interface, all ...step) {
	t.Helper()
	if err := run(t, nft, all...); err != nil {
		t.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

func table() *knftables.Table { return &knftables.Table{} }

func chain(name string) *knftables.Chain { return &knftables.Chain{Name: name} }

func base(name string, typ knftables.BaseChainType, hook knftables.BaseChainHook, priority knftables.BaseChainPriority) *knftables.Chain {
	return &knftables.Chain{Name: name, Type: ptr(typ), Hook: ptr(hook), Priority: ptr(priority)}
}

func rule(chain, text string) *knftables.Rule { return &knftables.Rule{Chain: chain, Rule: text} }

// noted is a rule with a comment, by which scene.rule finds it.
func noted(chain, text, comment string) *knftables.Rule {
	return &knftables.Rule{Chain: chain, Rule: text, Comment: ptr(comment)}
}

func set(name, typ string, flags ...knftables.SetFlag) *knftables.Set {
	return &knftables.Set{Name: name, Type: typ, Flags: flags}
}

func mapping(name, typ string) *knftables.Map { return &knftables.Map{Name: name, Type: typ} }

func member(set string, key ...string) *knftables.Element {
	return &knftables.Element{Set: set, Key: key}
}

// pair is an element of a map.
func pair(name, value string, key ...string) *knftables.Element {
	return &knftables.Element{Map: name, Key: key, Value: []string{value}}
}

// scenery is a table with one object of each kind.
func scenery(tx *knftables.Transaction) {
	first := member("hosts", "10.0.0.1")
	first.Comment = ptr("first")
	steps(
		add(&knftables.Table{Comment: ptr("scenery")}),
		add(base("base", knftables.FilterType, knftables.InputHook, knftables.FilterPriority), chain("plain"), chain("empty")),
		add(set("hosts", "ipv4_addr"), set("nets", "ipv4_addr", knftables.IntervalFlag)),
		add(mapping("ports", "ipv4_addr : inet_service"), mapping("verdicts", "ipv4_addr . inet_proto . inet_service : verdict")),
		add(first, member("hosts", "10.0.0.2"), member("nets", "10.0.0.0/8"), pair("ports", "80", "10.0.0.1")),
		add(pair("verdicts", "goto plain", "10.0.0.1", "tcp", "80")),
		baseRules,
		add(noted("plain", "return", "four")),
	)(tx)
}

func baseRules(tx *knftables.Transaction) {
	add(
		noted("base", "ip saddr @hosts drop", "one"),
		noted("base", "ip saddr . ip protocol . th dport vmap @verdicts", "two"),
		noted("base", "jump plain", "three"),
	)(tx)
}

// scene is the state that a transaction can look up before it is made.
type scene struct {
	t   *testing.T
	nft knftables.Interface
}

// rule names a rule by the handle of the one with a comment.
func (s *scene) rule(chain, comment string) *knftables.Rule {
	s.t.Helper()
	rules, err := s.nft.ListRules(aggregatortest.Context(s.t), chain)
	if err != nil {
		s.t.Errorf("list rules: %v", err)
	}
	for _, r := range rules {
		if r.Comment != nil && *r.Comment == comment {
			return &knftables.Rule{Chain: chain, Handle: r.Handle}
		}
	}
	s.t.Errorf("chain %s has no rule %q", chain, comment)
	return &knftables.Rule{Chain: chain, Handle: ptr(1)}
}

// next is a new rule whose place is next to another.
func (s *scene) next(comment string) *knftables.Rule {
	r := s.rule("base", comment)
	r.Rule, r.Comment = "ip ttl 9 drop", ptr("next to "+comment)
	return r
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v: want %v", what, got, want)
	}
}
