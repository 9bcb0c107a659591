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

// LiveQuery selects what DumpLive reads beside objects and flowtables.
type LiveQuery struct {
	// Rules also reads the chains and sets, and the rules.
	Rules bool
	// Sets are the sets whose elements are read, at most Limit elements together.
	Sets  []*set.Set
	Limit int
	// Counted omits elements with a counter of 0 packets.
	Counted bool
}

// DumpLive reads a table over its own sockets, so that commits do not wait.
//
// A simultaneous commit can make it omit objects. Errors are as for DumpSet.
func (c *Conn) DumpLive(table nft.TableID, q LiveQuery) (*Live, error) {
	live := &Live{Rules: map[uint64][]string{}, Elements: make(map[string]LiveElements, len(q.Sets))}
	if err := c.apart(table, func(r *link) error { return live.read(r, table, q.Rules) }); err != nil {
		return nil, fmt.Errorf("dump counters of table %s: %w", table, err)
	}
	for _, s := range q.Sets {
		d := newElementDecoder(s)
		d.live, d.limit, d.counted = true, q.Limit, q.Counted
		err := c.dumpSet(table, d)
		switch {
		case errors.Is(err, unix.ENOENT):
			continue // deleted by a commit
		case err != nil && !errors.Is(err, errLimit):
			return nil, fmt.Errorf("dump set %s of table %s: %w", s.Name, table, err)
		}
		e := LiveElements{Elements: d.finish(), More: errors.Is(err, errLimit)}
		live.Elements[s.Name] = e
		q.Limit = max(q.Limit-len(e.Elements), 0)
	}
	return live, nil
}

func (l *Live) read(r *link, id nft.TableID, rules bool) (err error) {
	inTable := named(id.Name, 0, "")
	if l.Flowtables, err = r.handles(unix.NFT_MSG_GETFLOWTABLE, id, inTable, nftaFlowtableName, nftaFlowtableHandle); err != nil {
		return err
	}
	l.Objects = map[object.Ref]LiveObject{}
	_, err = list(r.dumpInTable, unix.NFT_MSG_GETOBJ, id, inTable, func(m reply) (struct{}, error) {
		o, err := decodeObject(m)
		handle, _ := attr.Find(m.attrs, nftaObjHandle)
		if o != nil {
			l.Objects[o.Ref()] = LiveObject{Handle: handle.Uint64BE(), Text: o.Text}
		}
		return struct{}{}, errors.Join(err, handle.Err())
	})
	if err != nil || !rules {
		return err
	}
	if l.Chains, err = r.handles(unix.NFT_MSG_GETCHAIN, id, nil, unix.NFTA_CHAIN_NAME, unix.NFTA_CHAIN_HANDLE); err != nil {
		return err
	}
	if l.Sets, err = r.handles(unix.NFT_MSG_GETSET, id, inTable, unix.NFTA_SET_NAME, nftaSetHandle); err != nil {
		return err
	}
	_, err = list(r.dumpInTable, unix.NFT_MSG_GETRULE, id, inTable, func(m reply) (struct{}, error) { return struct{}{}, l.rule(m) })
	return err
}

func (l *link) handles(typ int, id nft.TableID, request []byte, nameAttr, handleAttr uint16) (map[string]uint64, error) {
	out := map[string]uint64{}
	_, err := list(l.dumpInTable, typ, id, request, func(m reply) (struct{}, error) {
		name, _ := attr.Find(m.attrs, nameAttr)
		handle, _ := attr.Find(m.attrs, handleAttr)
		out[name.Text()] = handle.Uint64BE()
		return struct{}{}, errors.Join(name.Err(), handle.Err())
	})
	return out, err
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
