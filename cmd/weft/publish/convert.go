package publish

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/json"
)

// parseFile returns the tables of a .nft file.
func parseFile(text string) ([]*weftv1.Table, error) {
	tables, err := json.ParseFile("", text)
	if err != nil {
		return nil, err
	}
	out := make([]*weftv1.Table, 0, len(tables))
	for _, t := range tables {
		m := &weftv1.Table{Family: t.Family.String(), Name: t.Name, Comment: t.Comment, Flags: t.Flags}
		for _, o := range t.Objects {
			m.Objects = append(m.Objects, &weftv1.Object{Kind: string(o.Kind), Name: o.Name, Text: o.Text, Comment: o.Comment})
		}
		for _, f := range t.Flowtables {
			m.Flowtables = append(m.Flowtables, &weftv1.Flowtable{
				Name: f.Name, Hook: f.Hook, Priority: f.Priority, Devices: f.Devices, Flags: f.Flags, Counter: f.Counter,
			})
		}
		for _, c := range t.Chains {
			m.Chains = append(m.Chains, chainMessage(c))
		}
		for _, s := range t.Sets {
			m.Sets = append(m.Sets, setMessage(s))
		}
		for _, s := range t.Maps {
			m.Maps = append(m.Maps, setMessage(nft.Set(s)))
		}
		out = append(out, m)
	}
	return out, nil
}

func chainMessage(c nft.Chain) *weftv1.Chain {
	m := &weftv1.Chain{
		Name: c.Name, Type: c.Type, Hook: c.Hook, Priority: c.Priority,
		Policy: c.Policy, Device: c.Device, Devices: c.Devices, Flags: c.Flags, Comment: c.Comment,
	}
	for _, r := range c.Rules {
		m.Rules = append(m.Rules, &weftv1.Rule{Text: r.Text, Comment: r.Comment})
	}
	return m
}

func setMessage(s nft.Set) *weftv1.Set {
	m := &weftv1.Set{
		Name: s.Name, Type: s.Type, Typeof: s.TypeOf, Flags: s.Flags,
		Timeout: duration(s.Timeout), GcInterval: duration(s.GCInterval), Size: s.Size,
		Policy: s.Policy, AutoMerge: s.AutoMerge, Stateful: s.Stateful, Comment: s.Comment,
	}
	for _, e := range s.Elements {
		m.Elements = append(m.Elements, elementMessage(e))
	}
	return m
}

func elementMessage(e nft.Element) *weftv1.Element {
	m := &weftv1.Element{Key: e.Key, Value: e.Value, Comment: e.Comment, TimeoutMs: e.Timeout.Milliseconds()}
	if e.Expires != 0 || len(e.Stateful) > 0 {
		m.State = &weftv1.ElementState{ExpiresMs: e.Expires.Milliseconds(), Stateful: e.Stateful}
	}
	return m
}

// duration leaves out what is not given.
func duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// setOf returns a declaration, without elements.
func setOf(m *weftv1.Set) nft.Set {
	return nft.Set{
		Name: m.GetName(), Type: m.GetType(), TypeOf: m.GetTypeof(), Flags: m.GetFlags(),
		Timeout: m.GetTimeout().AsDuration(), GCInterval: m.GetGcInterval().AsDuration(), Size: m.GetSize(),
		Policy: m.GetPolicy(), AutoMerge: m.GetAutoMerge(), Stateful: m.GetStateful(), Comment: m.GetComment(),
	}
}

// declaration returns a set without its elements; it shares the rest.
func declaration(m *weftv1.Set) *weftv1.Set {
	return &weftv1.Set{
		Name: m.GetName(), Type: m.GetType(), Typeof: m.GetTypeof(), Flags: m.GetFlags(),
		Timeout: m.GetTimeout(), GcInterval: m.GetGcInterval(), Size: m.GetSize(),
		Policy: m.GetPolicy(), AutoMerge: m.GetAutoMerge(), Stateful: m.GetStateful(), Comment: m.GetComment(),
	}
}
