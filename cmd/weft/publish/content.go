package publish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/entries"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// kept is a fragment for resyncs: a snapshot until the first patch, then content.
type kept struct {
	snapshot *weftv1.Fragment
	content  *content
}

var _ client.Content = (*kept)(nil)

// Fragment implements client.Content.
func (k *kept) Fragment() *weftv1.Fragment {
	if k.content != nil {
		return k.content.fragment(time.Now())
	}
	return k.snapshot
}

// Apply implements client.Content.
func (k *kept) Apply(p *weftv1.Patch) {
	var err error
	if k.snapshot != nil {
		k.content, err = newContent(k.snapshot)
		k.snapshot = nil
	}
	if err == nil && k.content != nil {
		err = k.content.patch(p)
	}
	if err != nil {
		k.content = nil
	}
}

// Clone implements client.Content.
func (k *kept) Clone() client.Content {
	if k.content == nil {
		return &kept{snapshot: k.snapshot}
	}
	return &kept{content: k.content.clone()}
}

// content finds elements by the meaning of their keys, not by their spelling.
type content struct {
	entries map[string]entry
	// by the keys of entries
	sets map[string]*set.Set
	err  error
}

var _ entries.Writer = (*content)(nil)

type entry struct {
	proto.Message
	// the time when an element expires, or zero
	expires time.Time
}

// newContent joins repeated declarations of a table.
func newContent(f *weftv1.Fragment) (_ *content, err error) {
	whole := client.Declaration(f)
	if whole.Tables = f.GetTables(); f.GetNft() != "" {
		if whole.Tables, err = convert.File(f.GetNft()); err != nil {
			return nil, err
		}
	}
	whole.Nft = ""
	c := &content{entries: make(map[string]entry), sets: make(map[string]*set.Set)}
	for _, e := range entries.Of(whole) {
		c.join(e)
	}
	return c, c.err
}

func (c *content) join(e entries.Entry) {
	key, _ := c.locate(e.Key)
	more, isTable := e.Value.(*weftv1.Table)
	old, ok := c.entries[key]
	switch {
	case !ok || !isTable:
		c.Put(e)
	case c.sets[key] == nil:
		joined := proto.CloneOf(old.Message.(*weftv1.Table)) //nolint:forcetypeassert // the key says so
		proto.Merge(joined, more)
		joined.Flags = slices.Compact(slices.Sorted(slices.Values(joined.GetFlags())))
		c.entries[key] = entry{Message: joined}
	}
}

func (c *content) patch(p *weftv1.Patch) error {
	for _, m := range p.GetTables() {
		entries.Patch(c, m)
		for _, e := range m.GetElements() {
			if key, _ := c.locate(entries.Key(m.GetFamily(), m.GetName(), "set", e.GetSet())); c.sets[key] == nil {
				c.fail(fmt.Errorf("the fragment has no set or map %s", e.GetSet()))
			}
		}
		if c.err != nil {
			return fmt.Errorf("table %s %s: %w", m.GetFamily(), m.GetName(), c.err)
		}
	}
	return nil
}

func (c *content) locate(key string) (id string, of *set.Set) {
	if key == entries.Head {
		return key, nil
	}
	parts := strings.SplitN(key, " ", 5)
	family, err := nft.ParseFamily(parts[0])
	c.fail(err)
	parts[0] = family.String()
	if len(parts) < 5 || parts[2] != "set" {
		return entries.Key(parts...), nil
	}
	if of = c.sets[entries.Key(parts[:4]...)]; of == nil {
		c.fail(fmt.Errorf("the fragment has no set or map %s", parts[3]))
		return key, nil
	}
	e, err := of.PackKey(parts[4])
	c.fail(err)
	parts[4] = e.Key + "\x00" + e.KeyEnd
	return entries.Key(parts...), of
}

func (c *content) fail(err error) { c.err = cmp.Or(c.err, err) }

// Has implements entries.Writer.
func (c *content) Has(key string) bool {
	id, _ := c.locate(key)
	return c.entries[id].Message != nil
}

// Put implements entries.Writer.
func (c *content) Put(e entries.Entry) {
	key, of := c.locate(e.Key)
	put := entry{Message: e.Value}
	switch v := e.Value.(type) {
	case *weftv1.Element:
		put.expires = expiration(of, v)
	case *weftv1.Table:
		for i, s := range slices.Concat(v.GetSets(), v.GetMaps()) {
			c.declare(key, s, i >= len(v.GetSets()))
		}
	}
	c.entries[key] = put
}

func (c *content) declare(key string, s *weftv1.Set, isMap bool) {
	family, _, _ := strings.Cut(key, " ")
	f, err := nft.ParseFamily(family)
	if err == nil {
		c.sets[key], err = convert.CompileSet(f, s, isMap)
	}
	c.fail(err)
}

// expiration returns when an element added now expires, or zero for never.
func expiration(of *set.Set, e *weftv1.Element) (at time.Time) {
	timeout := e.GetTimeout().AsDuration()
	if timeout == 0 && of != nil {
		timeout = of.Timeout
	}
	// A kernel snapshot has less than the timeout left.
	if left := e.GetState().GetExpires().AsDuration(); left > 0 {
		timeout = left
	}
	if at := e.GetState().GetExpireTime(); at != nil {
		return at.AsTime()
	}
	if timeout > 0 {
		at = time.Now().Add(timeout)
	}
	return at
}

// Delete implements entries.Writer.
func (c *content) Delete(key string) {
	id, _ := c.locate(key)
	delete(c.entries, id)
	delete(c.sets, id)
}

// DeleteBelow implements entries.Writer.
func (c *content) DeleteBelow(key string) {
	id, _ := c.locate(key)
	maps.DeleteFunc(c.entries, func(k string, _ entry) bool { return strings.HasPrefix(k, id+" ") })
}

// clone shares the messages, which are immutable.
func (c *content) clone() *content {
	return &content{entries: maps.Clone(c.entries), sets: maps.Clone(c.sets), err: c.err}
}

// fragment leaves out expired elements; others have their remaining time, so that a resync does not
// renew them.
func (c *content) fragment(now time.Time) *weftv1.Fragment {
	f := &weftv1.Fragment{}
	for _, key := range slices.Sorted(maps.Keys(c.entries)) {
		e := c.entries[key]
		if !e.expires.IsZero() && !e.expires.After(now) {
			continue
		}
		if element, ok := e.Message.(*weftv1.Element); ok && !e.expires.IsZero() {
			element = proto.CloneOf(element)
			element.State = &weftv1.ElementState{Expires: durationpb.New(e.expires.Sub(now)), Stateful: element.GetState().GetStateful()}
			e.Message = element
		}
		value, err := proto.Marshal(e.Message)
		if err == nil {
			err = entries.Add(f, key, value)
		}
		if err != nil {
			return nil
		}
	}
	return f
}
