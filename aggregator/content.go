package aggregator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// List returns the status of all fragments, ordered by publisher and name, and
// the last revision. The messages are shared: they must not be changed.
func (a *Aggregator) List() (fragments []*weftv1.FragmentStatus, revision uint64) {
	return a.statuses.list()
}

// Get returns one fragment's status and committed content, in canonical form.
// Of an adopted fragment, which has not come back since a restart, only what the
// kernel can tell is known: names, and the elements of sets.
//
// Possible errors: ErrInvalidName, ErrNotFound, ErrStandby, ErrStopped, ctx's.
func (a *Aggregator) Get(ctx context.Context, publisher, name string) (*weftv1.FragmentStatus, *weftv1.Fragment, error) {
	if err := admission.CheckIdentity("publisher", publisher); err != nil {
		return nil, nil, err
	}
	if err := admission.CheckIdentity("fragment", name); err != nil {
		return nil, nil, err
	}
	key := desired.Key{Publisher: publisher, Name: name}
	var c *content
	if err := a.ask(ctx, func(w *writer) { c = w.content(key) }); err != nil {
		return nil, nil, err
	}
	if c.status == nil {
		return nil, nil, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	head := &weftv1.Fragment{Name: c.status.GetName(), Priority: c.status.GetPriority(), Lifetime: c.status.GetLifetime()}
	for _, t := range c.tables {
		for _, s := range t.PutSets {
			slices.SortFunc(s.Elements, compareElements)
		}
	}
	return c.status, fragmentMessage(head, c.tables), nil
}

// content is a fragment as the writer hands it out: nothing of it changes, so
// that the reader's goroutine can turn it into a message.
type content struct {
	key    desired.Key
	status *weftv1.FragmentStatus
	tables []desired.TableUpdate
}

// content returns the content of a fragment, with a nil status if there is none.
func (w *writer) content(key desired.Key) *content {
	c := &content{key: key, status: w.statuses.get(key)}
	c.tables, _ = w.state.Content(key)
	return c
}

// fragmentMessage returns a fragment with what updates put into tables.
func fragmentMessage(head *weftv1.Fragment, tables []desired.TableUpdate) *weftv1.Fragment {
	for i := range tables {
		head.Tables = append(head.Tables, tableMessage(&tables[i]))
	}
	return head
}

// tableMessage returns what an update puts into a table.
func tableMessage(t *desired.TableUpdate) *weftv1.Table {
	m := &weftv1.Table{Family: t.Table.Family.String(), Name: t.Table.Name, Comment: t.Comment, Flags: flagsMessage(t.Dormant)}
	for _, o := range t.PutObjects {
		m.Objects = append(m.Objects, objectMessage(o))
	}
	for _, ft := range t.PutFlowtables {
		m.Flowtables = append(m.Flowtables, flowtableMessage(ft))
	}
	for _, c := range t.PutChains {
		m.Chains = append(m.Chains, chainMessage(written(c.Source), c))
	}
	for _, s := range t.PutSets {
		if s.Decl.Map {
			m.Maps = append(m.Maps, setMessage(written(s.Source), s))
		} else {
			m.Sets = append(m.Sets, setMessage(written(s.Source), s))
		}
		if s.Conntrack {
			m.ConntrackMaps = append(m.ConntrackMaps, s.Decl.Name)
		}
		if s.Affinity {
			m.AffinityMaps = append(m.AffinityMaps, s.Decl.Name)
		}
	}
	return m
}

// patchMessage returns a patch that does what an update does.
func patchMessage(u *desired.Update) *weftv1.Patch {
	p := &weftv1.Patch{Fragment: u.Fragment.Name}
	for i := range u.Tables {
		t := &u.Tables[i]
		put := tableMessage(t)
		m := &weftv1.TablePatch{
			Family: put.GetFamily(), Name: put.GetName(),
			DeleteChains: t.DeleteChains, DeleteSets: t.DeleteSets, DeleteFlowtables: t.DeleteFlowtables,
			PutChains: put.GetChains(), PutSets: put.GetSets(), PutMaps: put.GetMaps(), PutObjects: put.GetObjects(), PutFlowtables: put.GetFlowtables(),
			ConntrackMaps: put.GetConntrackMaps(), AffinityMaps: put.GetAffinityMaps(),
		}
		for _, o := range t.DeleteObjects {
			m.DeleteObjects = append(m.DeleteObjects, &weftv1.ObjectName{Kind: string(o.Kind), Name: o.Name})
		}
		for _, e := range t.Elements {
			m.Elements = append(m.Elements, elementsMessage(&e))
		}
		p.Tables = append(p.Tables, m)
	}
	return p
}

func elementsMessage(e *desired.Elements) *weftv1.ElementPatch {
	m := &weftv1.ElementPatch{Set: e.Set}
	for i := range e.Remove {
		m.Remove = append(m.Remove, e.Decl.FormatKey(e.Remove[i]))
	}
	for i := range e.Add {
		m.Add = append(m.Add, elementMessage(e.Decl, &e.Add[i]))
	}
	return m
}

// written returns a declaration as its publisher wrote it, which is empty for an
// adopted fragment.
func written[T any](source *T) (d T) {
	if source != nil {
		d = *source
	}
	return d
}

func chainMessage(d nft.Chain, c desired.Chain) *weftv1.Chain {
	m := &weftv1.Chain{
		Name: c.Decl.Name, Type: d.Type, Hook: d.Hook, Priority: d.Priority, Policy: d.Policy, Device: d.Device, Devices: d.Devices, Flags: d.Flags, Comment: d.Comment,
	}
	for _, r := range c.Rules {
		if r.Text == "" {
			// Adopted: known by its fingerprint alone.
			continue
		}
		m.Rules = append(m.Rules, &weftv1.Rule{Text: r.Text, Comment: r.Comment})
	}
	return m
}

func setMessage(d nft.Set, s desired.Set) *weftv1.Set {
	m := &weftv1.Set{
		Name: s.Decl.Name, Type: d.Type, Typeof: d.TypeOf, Flags: d.Flags, Timeout: duration(d.Timeout), GcInterval: duration(d.GCInterval),
		Size: d.Size, Policy: d.Policy, AutoMerge: d.AutoMerge, Stateful: d.Stateful, Comment: d.Comment,
		Elements: make([]*weftv1.Element, 0, len(s.Elements)),
	}
	for i := range s.Elements {
		m.Elements = append(m.Elements, elementMessage(s.Decl, &s.Elements[i]))
	}
	return m
}

// elementMessage converts an element of a set to a message.
func elementMessage(d *set.Set, e *set.Element) *weftv1.Element {
	m := &weftv1.Element{Key: d.FormatKey(*e), Value: d.FormatData(*e), Comment: e.Comment, TimeoutMs: e.Timeout.Milliseconds()}
	if e.State != "" {
		m.State = &weftv1.ElementState{ExpiresMs: e.Expires().Milliseconds(), Stateful: e.Stateful()}
	}
	return m
}

func objectMessage(o *object.Object) *weftv1.Object {
	d := o.Declaration()
	return &weftv1.Object{Kind: string(d.Kind), Name: d.Name, Text: d.Text, Comment: d.Comment}
}

func flowtableMessage(f *object.Flowtable) *weftv1.Flowtable {
	d := f.Declaration()
	return &weftv1.Flowtable{Name: d.Name, Hook: d.Hook, Priority: d.Priority, Devices: d.Devices, Flags: d.Flags, Counter: d.Counter}
}

// flagsMessage returns the flags of a table.
func flagsMessage(dormant bool) []string {
	if dormant {
		return []string{"dormant"}
	}
	return nil
}

func duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
