package kernel

import (
	"cmp"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/set"
)

// The kernel requires an id unique in the batch, also for named sets. elements is 0 except for an
// anonymous set.
func (e *encoder) addSet(table nft.TableID, set *set.Set, id uint32, elements int) error {
	size := cmp.Or(set.Size, uint32(elements))
	e.open(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, table)
	return e.fields(setFields(set, &id, &size))
}

type elementsOp struct {
	table    nft.TableID
	set      *set.Set
	elements []set.Element
	add      bool
	// renew sends the time of each element, even if it is the whole timeout.
	renew bool
	// first means that the set is empty before.
	first bool
	// number in the batch, or 0
	setID uint32
}

// changeElements splits at the maximum attribute length. On errors it returns the element's index.
func (e *encoder) changeElements(op elementsOp) (int, error) {
	if op.setID == 0 {
		e.elements += len(op.elements)
	}
	enc := newElementEncoder(op.set, op.add)
	enc.renew = op.renew
	for i := 0; i < len(op.elements); {
		list := e.beginElements(op, i)
		if i == 0 && op.first && op.set.NullEnd(op.elements) {
			e.buf = appendEnd(e.buf, strings.Repeat("\xff", int(op.set.Key.Len)))
		}
		empty := len(e.buf)
		for ; i < len(op.elements); i++ {
			before := len(e.buf)
			var err error
			if e.buf, err = enc.append(e.buf, op.elements, i); err != nil {
				return i, err
			}
			if len(e.buf)-list > attr.MaxLen {
				if before == empty {
					return i, fmt.Errorf("element has %d bytes: want at most %d", len(e.buf)-before, attr.MaxLen)
				}
				e.buf = e.buf[:before]
				break
			}
		}
		e.buf = attr.Close(e.buf, list)
	}
	return -1, nil
}

// Elements with a timeout can have expired, so a kernel that cannot destroy them gets them added
// first.
func (e *encoder) deleteElements(table nft.TableID, s *set.Set, elements []set.Element) (int, error) {
	op := elementsOp{table: table, set: s, elements: elements}
	if !e.destroy && s.Flags&unix.NFT_SET_TIMEOUT != 0 {
		op.add = true
		if i, err := e.changeElements(op); err != nil {
			return i, err
		}
		op.add = false
	}
	return e.changeElements(op)
}

func (e *encoder) beginElements(op elementsOp, first int) (list int) {
	typ, flags := unix.NFT_MSG_DELSETELEM, uint16(0)
	switch {
	case op.add:
		typ, flags = unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE
	case e.destroy && op.set.Flags&unix.NFT_SET_TIMEOUT != 0:
		typ = nftMsgDestroySetElem
	}
	e.open(typ, flags, op.table)
	e.string(unix.NFTA_SET_ELEM_LIST_SET, op.set.Name)
	if op.setID != 0 {
		e.uint32(unix.NFTA_SET_ELEM_LIST_SET_ID, op.setID)
	} else {
		e.messages[len(e.messages)-1].element = first
	}
	e.buf, list = attr.OpenNested(e.buf, unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	return list
}
