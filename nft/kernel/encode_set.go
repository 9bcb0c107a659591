package kernel

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
)

// addSet appends the declaration of a set or map. The kernel wants a number
// that is unique in the batch even for named ones.
func (e *encoder) addSet(table nft.TableID, set *set.Set, id uint32, size int) error {
	if set == nil {
		return errors.New("set is nil")
	}
	if err := checkName("set", set.Name); err != nil {
		return err
	}
	at := e.begin(msgType(unix.NFT_MSG_NEWSET), unix.NLM_F_CREATE, uint8(table.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_SET_TABLE, table.Name)
	e.buf = attr.AppendString(e.buf, unix.NFTA_SET_NAME, set.Name)
	e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_FLAGS, set.Flags)
	e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_KEY_TYPE, set.Key.ID)
	e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_KEY_LEN, set.Key.Len)
	switch {
	case set.Object != "":
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_OBJ_TYPE, compile.ObjectNumber(set.Object))
	case set.Verdict:
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_DATA_TYPE, unix.NFT_DATA_VERDICT)
	case set.Map:
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_DATA_TYPE, set.Data.ID)
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_DATA_LEN, set.Data.Len)
	}
	e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_ID, id)
	if set.Timeout != 0 {
		ms, err := milliseconds(set.Timeout)
		if err != nil {
			return err
		}
		e.buf = attr.AppendUint64BE(e.buf, unix.NFTA_SET_TIMEOUT, ms)
	}
	if set.GCInterval != 0 {
		ms, err := milliseconds(set.GCInterval)
		if err != nil || ms > math.MaxUint32 {
			return fmt.Errorf("gc-interval %s: want 1ms to %s", set.GCInterval, time.Duration(math.MaxUint32)*time.Millisecond)
		}
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_GC_INTERVAL, uint32(ms))
	}
	if set.Memory {
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_POLICY, unix.NFT_SET_POL_MEMORY)
	}
	e.appendDesc(set, size)
	var err error
	if e.buf, err = appendStateful(e.buf, nftaSetExpr, nftaSetExpressions, set.Stateful); err != nil {
		return err
	}
	if len(set.UserData) > 0 {
		e.buf = attr.AppendBytes(e.buf, unix.NFTA_SET_USERDATA, set.UserData)
	}
	closeMessage(e.buf, at)
	return nil
}

// appendDesc appends the size, and the lengths of a concatenation's parts
// where the kernel takes them: only with NFT_SET_CONCAT.
func (e *encoder) appendDesc(set *set.Set, size int) {
	if set.Size != 0 {
		size = int(set.Size)
	}
	concat := set.Flags&setConcat != 0
	if size == 0 && !concat {
		return
	}
	var desc int
	e.buf, desc = attr.OpenNested(e.buf, unix.NFTA_SET_DESC)
	if size != 0 {
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_DESC_SIZE, uint32(size))
	}
	if concat {
		var list int
		e.buf, list = attr.OpenNested(e.buf, nftaSetDescConcat)
		for _, n := range set.Key.Fields {
			var field int
			e.buf, field = attr.OpenNested(e.buf, unix.NFTA_LIST_ELEM)
			e.buf = attr.AppendUint32BE(e.buf, nftaSetFieldLen, n)
			e.buf = attr.Close(e.buf, field)
		}
		e.buf = attr.Close(e.buf, list)
	}
	e.buf = attr.Close(e.buf, desc)
}

// milliseconds converts a duration that the kernel takes in milliseconds.
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
	// setID is the batch's own number of an anonymous set; 0 for named ones.
	setID uint32
}

// changeElements appends elements in as many messages as the limit of an
// attribute makes necessary. On errors it returns the index of the element.
func (e *encoder) changeElements(op elementsOp) (int, error) {
	if op.set == nil {
		return -1, errors.New("set is nil")
	}
	if op.setID == 0 {
		e.elements += len(op.elements)
	}
	enc := newElementEncoder(op.set, op.add)
	for i := 0; i < len(op.elements); {
		first := i
		if op.setID != 0 {
			first = -1
		}
		at, list := e.beginElements(op, first)
		empty := len(e.buf)
		for ; i < len(op.elements); i++ {
			before := len(e.buf)
			var err error
			if e.buf, err = enc.append(e.buf, &op.elements[i]); err != nil {
				return i, err
			}
			if len(e.buf)-list > attr.MaxLen {
				if before == empty {
					return i, fmt.Errorf("element takes %d bytes: want at most %d", len(e.buf)-before, attr.MaxLen)
				}
				e.buf = e.buf[:before]
				break
			}
		}
		e.buf = attr.Close(e.buf, list)
		closeMessage(e.buf, at)
	}
	return -1, nil
}

// beginElements opens a message with elements and their list.
func (e *encoder) beginElements(op elementsOp, first int) (at, list int) {
	typ, flags := unix.NFT_MSG_DELSETELEM, uint16(0)
	switch {
	case op.add:
		typ, flags = unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE
	case e.destroy && op.set.Flags&unix.NFT_SET_TIMEOUT != 0:
		// The kernel may have dropped the element already.
		typ = nftMsgDestroySetElem
	}
	at = e.begin(msgType(typ), flags, uint8(op.table.Family), first)
	e.buf = attr.AppendString(e.buf, unix.NFTA_SET_ELEM_LIST_TABLE, op.table.Name)
	e.buf = attr.AppendString(e.buf, unix.NFTA_SET_ELEM_LIST_SET, op.set.Name)
	if op.setID != 0 {
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_SET_ELEM_LIST_SET_ID, op.setID)
	}
	e.buf, list = attr.OpenNested(e.buf, unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	return at, list
}
