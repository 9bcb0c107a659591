package kernel

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// addSet appends the declaration of a set or map. The kernel requires an id that is
// unique in the batch, also for named sets. size is the number of elements of an
// anonymous set, and 0 for a named one.
func (e *encoder) addSet(table nft.TableID, set *set.Set, id uint32, size int) error {
	if set == nil {
		return errors.New("set is nil")
	}
	if err := checkName("set", set.Name); err != nil {
		return err
	}
	e.open(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, table)
	e.string(unix.NFTA_SET_NAME, set.Name)
	e.uint32(unix.NFTA_SET_FLAGS, set.Flags)
	e.uint32(unix.NFTA_SET_KEY_TYPE, set.Key.ID)
	e.uint32(unix.NFTA_SET_KEY_LEN, set.Key.Len)
	switch {
	case set.Object != "":
		e.uint32(unix.NFTA_SET_OBJ_TYPE, object.Number(set.Object))
	case set.Verdict:
		e.uint32(unix.NFTA_SET_DATA_TYPE, unix.NFT_DATA_VERDICT)
	case set.Map:
		e.uint32(unix.NFTA_SET_DATA_TYPE, set.Data.ID)
		e.uint32(unix.NFTA_SET_DATA_LEN, set.Data.Len)
	}
	e.uint32(unix.NFTA_SET_ID, id)
	if set.Timeout != 0 {
		ms, err := milliseconds(set.Timeout)
		if err != nil {
			return err
		}
		e.uint64(unix.NFTA_SET_TIMEOUT, ms)
	}
	if set.GCInterval != 0 {
		ms, err := milliseconds(set.GCInterval)
		if err != nil || ms > math.MaxUint32 {
			return fmt.Errorf("gc-interval %s: want 1ms to %s", set.GCInterval, time.Duration(math.MaxUint32)*time.Millisecond)
		}
		e.uint32(unix.NFTA_SET_GC_INTERVAL, uint32(ms))
	}
	if set.Memory {
		e.uint32(unix.NFTA_SET_POLICY, unix.NFT_SET_POL_MEMORY)
	}
	e.appendDesc(set, size)
	var err error
	if e.buf, err = appendStateful(e.buf, nftaSetExpr, nftaSetExpressions, set.Stateful); err != nil {
		return err
	}
	if len(set.UserData) > 0 {
		e.bytes(unix.NFTA_SET_USERDATA, set.UserData)
	}
	return nil
}

// appendDesc appends the size of a set, and the lengths of the fields of a concatenation
// if the kernel accepts them, which it does only with NFT_SET_CONCAT.
func (e *encoder) appendDesc(set *set.Set, size int) {
	if set.Size != 0 {
		size = int(set.Size)
	}
	concat := set.Flags&setConcat != 0
	if size == 0 && !concat {
		return
	}
	e.nested(unix.NFTA_SET_DESC, func() {
		if size != 0 {
			e.uint32(unix.NFTA_SET_DESC_SIZE, uint32(size))
		}
		if !concat {
			return
		}
		e.nested(nftaSetDescConcat, func() {
			for _, n := range set.Key.Fields {
				e.nested(unix.NFTA_LIST_ELEM, func() { e.uint32(nftaSetFieldLen, n) })
			}
		})
	})
}

// milliseconds converts a duration to the kernel's unit.
func milliseconds(d time.Duration) (uint64, error) {
	if d < time.Millisecond {
		return 0, fmt.Errorf("duration %s: want at least 1ms", d)
	}
	return uint64(d / time.Millisecond), nil
}

// elementsOp is a change of a set's elements.
type elementsOp struct {
	table    nft.TableID
	set      *set.Set
	elements []set.Element
	add      bool
	// setID is the batch's number of an anonymous set; 0 for named sets.
	setID uint32
}

// changeElements appends elements in as many messages as the greatest length of an
// attribute requires. On errors it returns the index of the element.
func (e *encoder) changeElements(op elementsOp) (int, error) {
	if op.set == nil {
		return -1, errors.New("set is nil")
	}
	if op.setID == 0 {
		e.elements += len(op.elements)
	}
	enc := newElementEncoder(op.set, op.add)
	for i := 0; i < len(op.elements); {
		list := e.beginElements(op, i)
		empty := len(e.buf)
		for ; i < len(op.elements); i++ {
			before := len(e.buf)
			var err error
			if e.buf, err = enc.append(e.buf, &op.elements[i]); err != nil {
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

// beginElements opens a message with the elements from number first on, and their list.
func (e *encoder) beginElements(op elementsOp, first int) (list int) {
	typ, flags := unix.NFT_MSG_DELSETELEM, uint16(0)
	switch {
	case op.add:
		typ, flags = unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE
	case e.destroy && op.set.Flags&unix.NFT_SET_TIMEOUT != 0:
		// The kernel may have expired the element already.
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
