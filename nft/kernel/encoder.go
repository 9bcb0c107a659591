package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/set"
)

// Encode is for tests: it returns the bytes that Commit of a new connection sends on a kernel with
// all features. Possible errors: *BatchError.
func Encode(ops []Op) ([]byte, error) {
	e := encoder{features: features{owner: true, ackEnd: true, destroy: true, renew: true}, buffer: buffer{seq: 1}}
	if err := e.batch(ops); err != nil {
		return nil, err
	}
	return e.buf, nil
}

type features struct {
	// owner means NFT_TABLE_F_OWNER and NFT_TABLE_F_PERSIST (Linux 6.9).
	owner bool
	// ackEnd means that the kernel acknowledges the end of a batch (Linux 6.10). Otherwise the last
	// message before it requests the acknowledgement.
	ackEnd bool
	// destroy means NFT_MSG_DESTROYSETELEM (Linux 6.3).
	destroy bool
	// renew means that adding an existing element sets its time to the message's (Linux 6.12).
	renew bool
}

// An encoder is used once.
type encoder struct {
	features
	// guard sends the generation gen; the kernel rejects the batch at another one.
	guard bool
	gen   uint32
	// check omits the batch's end, so that the kernel validates and drops the batch.
	check bool
	// own is ownTables.lookup. If nil, ops may change any table, and AddTable creates it.
	own func(nft.TableID) (protected, ok bool)

	buffer
	elements int
	ids      uint32
	tables   map[nft.TableID]tableChange
	rules    map[*Handle]uint32
	// tails are the last rules of created chains; nil if empty.
	tails  map[chainID]*Handle
	echoes []echo
}

type tableChange struct {
	exists  bool
	created bool
}

type chainID struct {
	table nft.TableID
	name  string
}

type echo struct {
	message int
	rule    AddRule
}

func (e *encoder) batch(ops []Op) error {
	e.buf = slices.Grow(e.buf, estimate(ops))
	e.messages = make([]message, 0, len(ops)+2)
	e.beginBatch()
	if e.guard {
		e.uint32(unix.NFNL_BATCH_GENID, e.gen)
	}
	for i, op := range ops {
		e.op = i
		element, err := e.encodeOrFail(op)
		if err != nil {
			return &BatchError{Index: i, Element: element, Op: op, Err: err}
		}
	}
	e.endBatch()
	if uint64(len(e.buf)) > math.MaxInt32 {
		return &BatchError{Index: -1, Element: -1, Err: ErrTooLarge}
	}
	return nil
}

// estimate is generous: growing a large buffer step by step costs more than encoding.
func estimate(ops []Op) int {
	const perOp, perElement, perVerdict = 256, 64, 40
	n := 2*perOp + len(ops)*perOp
	for _, op := range ops {
		var s *set.Set
		var elements []set.Element
		switch op := op.(type) {
		case AddElements:
			s, elements = op.Set, op.Elements
		case DeleteElements:
			s, elements = op.Set, op.Elements
		}
		if s == nil || len(elements) == 0 {
			continue
		}
		one := perElement + int(s.Key.Len) + int(s.Data.Len)
		if s.Verdict {
			one += perVerdict
		}
		if s.Flags&unix.NFT_SET_INTERVAL != 0 {
			one += perElement + int(s.Key.Len)
		}
		n += one * len(elements)
	}
	return n
}

func (e *encoder) beginBatch() { e.begin(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC) }

// endBatch requests an acknowledgement of the last message if the kernel does not acknowledge the
// end.
func (e *encoder) endBatch() {
	flags := uint16(0)
	if e.ackEnd && !e.check {
		flags = unix.NLM_F_ACK
	} else if e.changes() {
		last := e.buf[e.messages[len(e.messages)-1].offset+6:]
		binary.NativeEndian.PutUint16(last, binary.NativeEndian.Uint16(last)|unix.NLM_F_ACK)
	}
	if !e.check {
		e.begin(unix.NFNL_MSG_BATCH_END, flags, unix.AF_UNSPEC)
	}
	e.closeLast()
}

func (e *encoder) encodeOrFail(op Op) (element int, err error) {
	defer func() {
		if v := recover(); v != nil {
			tooLong, ok := v.(*attr.TooLongError)
			if !ok {
				panic(v)
			}
			element, err = -1, tooLong
		}
	}()
	return e.encode(op)
}

// encode returns the index of the wrong element with an error, or -1.
func (e *encoder) encode(op Op) (element int, err error) {
	if err := e.checkTable(op); err != nil {
		return -1, err
	}
	switch op := op.(type) {
	case AddTable:
		return -1, e.addTable(op)
	case DeleteTable:
		e.deleteTable(op.Table)
	case AddChain:
		return -1, e.addChain(op)
	case DeleteChain:
		e.remove(unix.NFT_MSG_DELCHAIN, op.Table, unix.NFTA_CHAIN_NAME, op.Name)
		delete(e.tails, chainID{op.Table, op.Name})
	case flushChain:
		// without a handle the kernel removes all rules of the chain
		e.remove(unix.NFT_MSG_DELRULE, op.Table, unix.NFTA_RULE_CHAIN, op.Name)
	case AddRule:
		return -1, e.addRule(op)
	case DeleteRule:
		return -1, e.deleteRule(op)
	case AddSet:
		e.ids++
		return -1, e.addSet(op.Table, op.Set, e.ids, 0)
	case DeleteSet:
		e.remove(unix.NFT_MSG_DELSET, op.Table, unix.NFTA_SET_NAME, op.Name)
	case FlushSet:
		e.remove(unix.NFT_MSG_DELSETELEM, op.Table, unix.NFTA_SET_ELEM_LIST_SET, op.Name)
	case AddObject:
		e.open(unix.NFT_MSG_NEWOBJ, unix.NLM_F_CREATE|unix.NLM_F_EXCL, op.Table)
		return -1, e.fields(objectFields(op.Object))
	case DeleteObject:
		e.remove(unix.NFT_MSG_DELOBJ, op.Table, unix.NFTA_OBJ_NAME, op.Ref.Name)
		e.uint32(unix.NFTA_OBJ_TYPE, op.Ref.Type())
	case AddFlowtable:
		e.open(unix.NFT_MSG_NEWFLOWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, op.Table)
		return -1, e.fields(flowtableFields(op.Flowtable))
	case DeleteFlowtable:
		e.remove(unix.NFT_MSG_DELFLOWTABLE, op.Table, nftaFlowtableName, op.Name)
	case AddElements:
		if op.Renew && !e.renew {
			if element, err = e.deleteElements(op.Table, op.Set, op.Elements); err != nil {
				return element, err
			}
		}
		return e.changeElements(elementsOp{table: op.Table, set: op.Set, elements: op.Elements, add: true, renew: op.Renew && e.renew, first: op.First})
	case DeleteElements:
		return e.deleteElements(op.Table, op.Set, op.Elements)
	default:
		return -1, fmt.Errorf("unknown op %T", op)
	}
	return -1, nil
}

func (e *encoder) checkTable(op Op) error {
	if _, isAdd := op.(AddTable); isAdd || e.own == nil {
		return nil
	}
	if id := op.table(); !e.exists(id) {
		return fmt.Errorf("table %s: %w", id, ErrNotAdopted)
	}
	return nil
}

func (e *encoder) exists(id nft.TableID) bool {
	if t, ok := e.tables[id]; ok {
		return t.exists
	}
	if e.own == nil {
		return false
	}
	_, ok := e.own(id)
	return ok
}

func (e *encoder) setTable(id nft.TableID, t tableChange) {
	if e.tables == nil {
		e.tables = map[nft.TableID]tableChange{}
	}
	e.tables[id] = t
}
