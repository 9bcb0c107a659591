package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Live is the state of one of weft's tables that only the kernel knows.
type Live struct {
	// Handles by name. Maps are in Sets.
	Chains, Sets, Flowtables map[string]uint64
	Objects                  map[object.Ref]LiveObject
	// Rules are counters and quotas by handle, in the rule's order: "counter packets 3 bytes 180".
	Rules    map[uint64][]string
	Elements map[string]LiveElements
}

// LiveObject has counts in Text.
type LiveObject struct {
	Handle uint64
	Text   string
}

// LiveElements are a set's elements; State has the remaining timeout and the counts.
type LiveElements struct {
	Elements []set.Element
	// More elements exist beyond the limit.
	More bool
}

// DumpLive reads a table and at most limit elements of the given sets over its own sockets, so that
// commits do not wait.
//
// A simultaneous commit can make it omit objects. Errors are as for DumpSet.
func (c *Conn) DumpLive(table nft.TableID, sets []*set.Set, limit int) (*Live, error) {
	live := &Live{Rules: map[uint64][]string{}}
	if err := c.dumpLive(table, live, (*Conn).readChains, (*Conn).readObjects, (*Conn).readRules); err != nil {
		return nil, err
	}
	return live, c.readLiveElements(table, live, sets, limit, false)
}

// DumpElements is DumpLive for elements, named objects and flowtables. If counted is true, it omits
// elements with a counter of 0 packets.
func (c *Conn) DumpElements(table nft.TableID, sets []*set.Set, limit int, counted bool) (*Live, error) {
	live, err := c.DumpObjects(table)
	if err != nil {
		return nil, err
	}
	return live, c.readLiveElements(table, live, sets, limit, counted)
}

func (c *Conn) readLiveElements(table nft.TableID, live *Live, sets []*set.Set, limit int, counted bool) error {
	live.Elements = make(map[string]LiveElements, len(sets))
	for _, s := range sets {
		d := newElementDecoder(s)
		d.live, d.limit, d.counted = true, limit, counted
		err := c.dumpSet(table, d)
		switch {
		case errors.Is(err, unix.ENOENT):
			continue // deleted by a commit
		case err != nil && !errors.Is(err, errLimit):
			return fmt.Errorf("dump set %s of table %s: %w", s.Name, table, err)
		}
		e := LiveElements{Elements: d.finish(), More: errors.Is(err, errLimit)}
		live.Elements[s.Name] = e
		limit = max(limit-len(e.Elements), 0)
	}
	return nil
}

// DumpObjects is DumpLive for named objects and flowtables.
func (c *Conn) DumpObjects(table nft.TableID) (*Live, error) {
	live := &Live{}
	return live, c.dumpLive(table, live, (*Conn).readObjects)
}

func (c *Conn) dumpLive(id nft.TableID, live *Live, parts ...func(*Conn, nft.TableID, *Live) error) error {
	err := c.apart(id, func(r *Conn) error {
		for _, read := range parts {
			if err := read(r, id, live); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("dump counters of table %s: %w", id, err)
	}
	return nil
}

func (c *Conn) handles(typ int, id nft.TableID, request []byte, nameAttr, handleAttr uint16) (map[string]uint64, error) {
	out := map[string]uint64{}
	_, err := list(c.dumpInTable, typ, id, request, func(m reply) (struct{}, error) {
		name, _ := attr.Find(m.attrs, nameAttr)
		handle, _ := attr.Find(m.attrs, handleAttr)
		out[name.Text()] = handle.Uint64BE()
		return struct{}{}, errors.Join(name.Err(), handle.Err())
	})
	return out, err
}

func (c *Conn) readChains(id nft.TableID, live *Live) (err error) {
	if live.Chains, err = c.handles(unix.NFT_MSG_GETCHAIN, id, nil, unix.NFTA_CHAIN_NAME, unix.NFTA_CHAIN_HANDLE); err != nil {
		return err
	}
	live.Sets, err = c.handles(unix.NFT_MSG_GETSET, id, named(id.Name, 0, ""), unix.NFTA_SET_NAME, nftaSetHandle)
	return err
}

func (c *Conn) readObjects(id nft.TableID, live *Live) (err error) {
	inTable := named(id.Name, 0, "")
	if live.Flowtables, err = c.handles(unix.NFT_MSG_GETFLOWTABLE, id, inTable, nftaFlowtableName, nftaFlowtableHandle); err != nil {
		return err
	}
	live.Objects = map[object.Ref]LiveObject{}
	_, err = list(c.dumpInTable, unix.NFT_MSG_GETOBJ, id, inTable, func(m reply) (struct{}, error) {
		o, err := decodeObject(m)
		handle, _ := attr.Find(m.attrs, nftaObjHandle)
		if o != nil {
			live.Objects[o.Ref()] = LiveObject{Handle: handle.Uint64BE(), Text: o.Text}
		}
		return struct{}{}, errors.Join(err, handle.Err())
	})
	return err
}

func (c *Conn) readRules(id nft.TableID, live *Live) error {
	_, err := list(c.dumpInTable, unix.NFT_MSG_GETRULE, id, named(id.Name, 0, ""), func(m reply) (struct{}, error) { return struct{}{}, live.rule(m) })
	return err
}

func (l *Live) rule(m reply) error {
	r, exprs, err := readRule(m)
	list := attr.NewReader(exprs)
	for list.Next() {
		switch name, _ := attr.Find(list.Bytes(), unix.NFTA_EXPR_NAME); {
		case name.TextIs("counter"), name.TextIs("quota"):
			words, err := expr.FormatStateful(list.Bytes())
			if err != nil {
				return err
			}
			if words == "counter" {
				words = "counter packets 0 bytes 0"
			}
			l.Rules[r.handle] = append(l.Rules[r.handle], words)
		}
	}
	return errors.Join(err, list.Err())
}
