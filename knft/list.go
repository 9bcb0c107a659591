package knft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/knftables"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// ListAll implements knftables.Interface. The keys are table, chain, set, map, counter and flowtable; a
// kind without objects is absent.
//
// Possible errors: an error for which knftables.IsNotFound is true; errors of package client; ctx's.
func (a *Adapter) ListAll(ctx context.Context) (map[string][]string, error) {
	m, err := a.merged(ctx, "list objects", &weftv1.GetTableRequest{Terse: true})
	if err != nil {
		return nil, err
	}
	out := map[string][]string{"table": {a.cfg.Table}}
	for k, names := range names(m) {
		out[string(k)] = names
	}
	return out, nil
}

// List implements knftables.Interface. objectType is chain, set, map, counter or flowtable, or its plural.
//
// Possible errors: see ListAll.
func (a *Adapter) List(ctx context.Context, objectType string) ([]string, error) {
	k := kind(strings.TrimSuffix(objectType, "s"))
	switch k {
	case kindChain, kindSet, kindMap, kindCounter, kindFlowtable:
	default:
		return nil, fmt.Errorf("list objects: unknown type %q: want chain, set, map, counter or flowtable", objectType)
	}
	m, err := a.merged(ctx, "list "+string(k)+"s", &weftv1.GetTableRequest{Terse: true})
	if err != nil {
		return nil, err
	}
	return names(m)[k], nil
}

// ListRules implements knftables.Interface. An empty chain means all chains. As in knftables, rules have a
// handle and a comment, but no text.
//
// Possible errors: see ListAll.
func (a *Adapter) ListRules(ctx context.Context, chain string) ([]*knftables.Rule, error) {
	m, err := a.merged(ctx, "list rules", &weftv1.GetTableRequest{Terse: true})
	if err != nil {
		return nil, err
	}
	rules, found := []*knftables.Rule{}, chain == ""
	for _, c := range m.GetChains() {
		name := c.GetChain().GetName()
		if chain != "" && chain != name {
			continue
		}
		found = true
		for _, r := range c.GetRules() {
			rules = append(rules, a.listed(name, r))
		}
	}
	if !found {
		return nil, notFound("list rules: no such chain %s in table %s %s", clip(chain), a.cfg.Family, a.cfg.Table)
	}
	return rules, nil
}

func (a *Adapter) listed(chain string, m *weftv1.MergedRule) *knftables.Rule {
	r := &knftables.Rule{
		Family: a.cfg.Family, Table: a.cfg.Table, Chain: chain,
		Handle: knftables.PtrTo(int(m.GetHandle())), //nolint:gosec // handles count from 1
	}
	if comment := m.GetRule().GetComment(); comment != "" {
		r.Comment = &comment
	}
	return r
}

// ListElements implements knftables.Interface.
//
// Possible errors: see ListAll.
func (a *Adapter) ListElements(ctx context.Context, objectType, name string) ([]*knftables.Element, error) {
	k := kind(objectType)
	if k != kindSet && k != kindMap {
		return nil, fmt.Errorf("list elements: unknown type %q: want set or map", objectType)
	}
	m, err := a.merged(ctx, "list elements", &weftv1.GetTableRequest{})
	if err != nil {
		return nil, err
	}
	for _, s := range m.GetSets() {
		if s.GetSet().GetName() != name || s.GetMap() != (k == kindMap) {
			continue
		}
		out := make([]*knftables.Element, 0, len(s.GetSet().GetElements()))
		for _, e := range s.GetSet().GetElements() {
			out = append(out, listedElement(k, name, e))
		}
		return out, nil
	}
	return nil, notFound("list elements: no such %s %s in table %s %s", k, clip(name), a.cfg.Family, a.cfg.Table)
}

func listedElement(k kind, name string, m *weftv1.Element) *knftables.Element {
	e := &knftables.Element{Key: fields(m.GetKey())}
	if k == kindMap {
		e.Map, e.Value = name, fields(m.GetValue())
	} else {
		e.Set = name
	}
	if comment := m.GetComment(); comment != "" {
		e.Comment = &comment
	}
	return e
}

func fields(text string) []string {
	out := splitOutside(text, " . ")
	for i, part := range out {
		out[i] = field(part)
	}
	return out
}

// field converts a part of a key or value as knftables does: strings without quotes, numbers in decimal.
func field(part string) string {
	if n := len(part); n >= 2 && part[0] == '"' && part[n-1] == '"' {
		return part[1 : n-1]
	}
	if hex, ok := strings.CutPrefix(part, "0x"); ok {
		if v, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return strconv.FormatUint(v, 10)
		}
	}
	return part
}

// ListCounters implements knftables.Interface.
//
// Possible errors: ErrUnsupported (an older aggregator); see ListAll.
func (a *Adapter) ListCounters(ctx context.Context) ([]*knftables.Counter, error) {
	m, err := a.merged(ctx, "list counters", &weftv1.GetTableRequest{ObjectsOnly: true, Live: true})
	if err != nil {
		return nil, err
	}
	out := []*knftables.Counter{}
	for _, o := range m.GetObjects() {
		d := o.GetObject()
		if d.GetKind() != string(kindCounter) {
			continue
		}
		c := &knftables.Counter{Family: a.cfg.Family, Table: a.cfg.Table, Name: d.GetName(), Handle: knftables.PtrTo(int(o.GetHandle()))} //nolint:gosec // handles count from 1
		var packets, bytes uint64
		if _, err := fmt.Sscanf(d.GetText(), "packets %d bytes %d", &packets, &bytes); err != nil || o.GetHandle() == 0 {
			return nil, fmt.Errorf("list counters: what counter %s has counted: %w", d.GetName(), ErrUnsupported)
		}
		if c.Packets, c.Bytes = &packets, &bytes; d.GetComment() != "" {
			c.Comment = knftables.PtrTo(d.GetComment())
		}
		out = append(out, c)
	}
	return out, nil
}

func names(m *weftv1.GetTableResponse) map[kind][]string {
	out := make(map[kind][]string)
	eachObject(m, func(k kind, name string, _ []*weftv1.FragmentName) {
		if slices.Contains(kinds, k) {
			out[k] = append(out[k], name)
		}
	})
	return out
}

func (a *Adapter) merged(ctx context.Context, what string, req *weftv1.GetTableRequest) (*weftv1.GetTableResponse, error) {
	if a.cfg.Table == "" {
		return nil, fmt.Errorf("%s: the adapter has no family and table: give them in Config", what)
	}
	req.Family, req.Name = string(a.cfg.Family), a.cfg.Table
	m, err := a.client.GetTable(ctx, req)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return nil, notFound("%s: no such table %s %s", what, req.GetFamily(), req.GetName())
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return m, nil
}
