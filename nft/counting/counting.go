package counting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Suffix ends the names of the copies.
const Suffix = "-staged"

// NFTNL_UDATA_COMMENT_MAXLEN
const maxComment = 128

const (
	accept = "accept"
	drop   = "drop"
)

// Tables returns copies, which share unchanged parts.
func Tables(tables []nft.Table) ([]nft.Table, error) {
	out := make([]nft.Table, 0, len(tables))
	for i := range tables {
		t := tables[i]
		t.Name += Suffix
		t.Flowtables = nil
		t.Objects = slices.DeleteFunc(slices.Clone(t.Objects), func(o nft.Object) bool { return !counts(o.Kind) })
		c := copier{family: t.Family, counters: make(map[string]string)}
		for _, own := range t.Chains {
			c.names = append(c.names, own.Name)
		}
		t.Chains = slices.Clone(t.Chains)
		for j := range t.Chains {
			if err := c.chain(&t.Chains[j]); err != nil {
				return nil, fmt.Errorf("chain %s in table %s %s: %w", t.Chains[j].Name, t.Family, tables[i].Name, err)
			}
		}
		t.Maps = slices.Clone(t.Maps)
		for j := range t.Maps {
			t.Maps[j].Elements = slices.Clone(t.Maps[j].Elements)
			for k := range t.Maps[j].Elements {
				if e := &t.Maps[j].Elements[k]; e.Value == accept || e.Value == drop {
					e.Value = "goto " + c.counter(e.Value)
				}
			}
		}
		t.Chains = append(t.Chains, c.chains...)
		out = append(out, t)
	}
	return out, nil
}

func counts(k nft.ObjectKind) bool {
	return k == nft.ObjectCounter || k == nft.ObjectQuota || k == nft.ObjectLimit
}

type copier struct {
	family   nft.Family
	names    []string
	counters map[string]string
	chains   []nft.Chain
}

func (c *copier) counter(verdict string) string {
	name := c.counters[verdict]
	if name == "" {
		for name = "would-" + verdict; slices.Contains(c.names, name); {
			name += "-"
		}
		c.counters[verdict] = name
		c.chains = append(c.chains, nft.Chain{Name: name, Rules: []nft.Rule{{Text: "counter accept", Comment: "would " + verdict}}})
	}
	return name
}

func (c *copier) chain(ch *nft.Chain) error {
	ch.Flags = nil
	if ch.Type == "route" {
		// type route would look up the route again if a mark changed
		ch.Type = "filter"
	}
	rules := make([]nft.Rule, 0, len(ch.Rules)+1)
	for i, r := range ch.Rules {
		copied, err := c.rule(r)
		if err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		rules = append(rules, copied)
	}
	if ch.Policy == drop {
		ch.Policy = accept
		rules = append(rules, nft.Rule{Text: "counter", Comment: "would drop: policy"})
	}
	ch.Rules = rules
	return nil
}

func (c *copier) rule(r nft.Rule) (nft.Rule, error) {
	parsed, err := syntax.ParseRule(c.family, r.Text)
	if err != nil {
		return r, err
	}
	b := builder{copier: c, counted: slices.ContainsFunc(parsed.Stmts, isCounter)}
	for _, s := range parsed.Stmts {
		b.add(s)
	}
	parsed.Stmts = b.stmts
	if len(b.would) > 0 && !b.ended {
		// nft requires a statement after a match
		b.count()
		parsed.Stmts = b.stmts
	}
	text := syntax.Print(parsed)
	if len(b.would) == 0 {
		return nft.Rule{Text: text, Comment: r.Comment}, nil
	}
	return nft.Rule{Text: text, Comment: comment(b.would, r.Comment)}, nil
}

func comment(would []string, before string) string {
	text := "would " + strings.Join(would, ", ")
	if before != "" {
		text += ": " + before
	}
	if len(text) > maxComment {
		text = strings.ToValidUTF8(text[:maxComment], "")
	}
	return text
}

func isCounter(s syntax.Stmt) bool {
	switch s := s.(type) {
	case *syntax.Counter:
		return true
	case *syntax.ObjectRef:
		return s.Kind == nft.ObjectCounter
	default:
		return false
	}
}

type builder struct {
	*copier
	stmts          []syntax.Stmt
	counted, ended bool
	// skipped actions
	would []string
}

func (b *builder) add(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.Match, *syntax.Counter, *syntax.Limit, *syntax.Quota, *syntax.ConnLimit, *syntax.Log, *syntax.Dynamic, *syntax.Meter:
		b.stmts = append(b.stmts, s)
	case *syntax.Verdict:
		if s.Kind == accept || s.Kind == drop {
			b.end(s.Kind)
		} else {
			b.ended = true
			b.stmts = append(b.stmts, s)
		}
	case *syntax.Vmap:
		if set, ok := s.Table.(*syntax.Set); ok {
			s = &syntax.Vmap{Pos: s.Pos, Key: s.Key, Table: b.harmless(set)}
		}
		b.ended = true
		b.stmts = append(b.stmts, s)
	case *syntax.Reject, *syntax.NAT, *syntax.Queue, *syntax.Fwd, *syntax.SynProxy:
		b.end(syntax.PrintStmt(s))
	case *syntax.ObjectRef:
		switch {
		case counts(s.Kind):
			b.stmts = append(b.stmts, s)
		case s.Kind == nft.ObjectSynProxy:
			b.end(syntax.PrintStmt(s))
		default:
			b.would = append(b.would, syntax.PrintStmt(s))
		}
	default: // Assign, TProxy, Dup, Notrack, FlowAdd, ResetOption
		b.would = append(b.would, syntax.PrintStmt(s))
	}
}

func (b *builder) count() {
	if !b.counted {
		b.counted = true
		b.stmts = append(b.stmts, &syntax.Counter{})
	}
}

func (b *builder) end(what string) {
	b.count()
	b.would, b.ended = append(b.would, what), true
	b.stmts = append(b.stmts, &syntax.Verdict{Kind: accept})
}

func (c *copier) harmless(s *syntax.Set) *syntax.Set {
	out := &syntax.Set{Pos: s.Pos}
	for _, e := range s.Elems {
		if v, ok := e.Value.(*syntax.Verdict); ok && (v.Kind == accept || v.Kind == drop) {
			copied := *e
			copied.Value = &syntax.Verdict{Pos: v.Pos, Kind: "goto", Chain: c.counter(v.Kind)}
			e = &copied
		}
		out.Elems = append(out.Elems, e)
	}
	return out
}
