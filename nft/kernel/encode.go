package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Encode returns the batch that Commit sends for ops to a kernel that has all
// that Open looks for, on a connection that has created no table yet: begin,
// messages, end, with sequence numbers from 1. Only the end asks for an
// acknowledgement. Possible errors: *BatchError.
func Encode(ops []Op) ([]byte, error) {
	e := encoder{owner: true, ackEnd: true, destroy: true, seq: 1}
	if err := e.batch(ops); err != nil {
		return nil, err
	}
	return e.buf, nil
}

// encoder turns ops into one netlink batch. It is used for one batch.
type encoder struct {
	// owner is true where new tables get NFT_TABLE_F_OWNER.
	owner bool
	// ackEnd is true where the kernel acknowledges the end of a batch (Linux
	// 6.10); where it does not, the last message before it is acknowledged.
	ackEnd bool
	// destroy is true where the kernel has NFT_MSG_DESTROYSETELEM.
	destroy bool
	// guard is true where the batch carries the generation gen.
	guard bool
	gen   uint32
	// check leaves out the end of the batch: the kernel validates it, and drops
	// it.
	check bool
	// seq is the sequence number of the batch's first message.
	seq uint32
	// ours tells which tables the connection may change; nil allows all, and
	// takes none for existing.
	ours func(nft.TableID) bool
	// protected tells which of those that are there the kernel keeps others away
	// from; nil is as owner.
	protected func(nft.TableID) bool

	buf      []byte
	messages []message
	elements int
	// op is the index of the op that is being encoded.
	op int
	// last is where the newest message before the end begins.
	last int
	// ids is the newest of the batch's own numbers for sets and rules.
	ids uint32
	// tables overlays ours with what the batch does: created or deleted.
	tables map[nft.TableID]bool
	// fresh are the tables that the batch creates.
	fresh map[nft.TableID]bool
	// rules are the batch's own numbers of the rules that it adds.
	rules map[*Handle]uint32
	// tails are the last rules of the chains that the batch creates; nil where
	// the chain is empty.
	tails map[chainID]*Handle
	// wanted are the rules whose handles the caller wants.
	wanted []wantedHandle
}

// message is what an error needs to know of a message.
type message struct {
	// op is the index of its op; -1 for begin and end.
	op int
	// element is the index in the op's Elements of the first element; -1 for
	// messages that carry none of them.
	element int
	// offset is where the message begins in the batch.
	offset int
}

// chainID names a chain.
type chainID struct {
	table nft.TableID
	name  string
}

// wantedHandle is a rule whose handle the kernel echoes.
type wantedHandle struct {
	message int
	rule    AddRule
}

// batch encodes a whole batch.
func (e *encoder) batch(ops []Op) error {
	e.op = -1
	e.buf = slices.Grow(e.buf, estimate(ops))
	e.messages = make([]message, 0, len(ops)+2)
	at := e.begin(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, -1)
	if e.guard {
		e.buf = attr.AppendUint32BE(e.buf, unix.NFNL_BATCH_GENID, e.gen)
	}
	closeMessage(e.buf, at)
	for i, op := range ops {
		e.op = i
		element, err := e.encode(op)
		if err != nil {
			return &BatchError{Index: i, Element: element, Op: op, Err: err}
		}
	}
	e.end()
	if uint64(len(e.buf)) > math.MaxInt32 {
		return &BatchError{Index: -1, Element: -1, Err: ErrTooLarge}
	}
	return nil
}

// estimate guesses the length of a batch, generously: to grow a large buffer
// step by step costs more than to encode into it.
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

// end appends the end of the batch, unless it is checked only. It, or where the
// kernel does not acknowledge that, the last message before it, asks for an
// acknowledgement.
func (e *encoder) end() {
	e.op = -1
	var flags uint16
	if e.ackEnd && !e.check {
		flags = unix.NLM_F_ACK
	} else if e.last > 0 {
		last := e.buf[e.last+6:]
		binary.NativeEndian.PutUint16(last, binary.NativeEndian.Uint16(last)|unix.NLM_F_ACK)
	}
	if e.check {
		return
	}
	at := e.begin(unix.NFNL_MSG_BATCH_END, flags, unix.AF_UNSPEC, -1)
	closeMessage(e.buf, at)
}

// begin opens a message of the batch and returns its offset. The family of the
// begin and end of a batch is AF_UNSPEC, and they name the subsystem.
func (e *encoder) begin(typ, flags uint16, family uint8, element int) int {
	at := len(e.buf)
	resID := uint16(0)
	if typ == unix.NFNL_MSG_BATCH_BEGIN || typ == unix.NFNL_MSG_BATCH_END {
		resID = unix.NFNL_SUBSYS_NFTABLES
	} else {
		e.last = at
	}
	seq := e.seq + uint32(len(e.messages))
	e.messages = append(e.messages, message{op: e.op, element: element, offset: at})
	e.buf = appendHeader(e.buf, typ, unix.NLM_F_REQUEST|flags, seq, family, resID)
	return at
}

// encode appends the messages of one op. On errors it returns the index of the
// element that is to blame, or -1.
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
		e.named(unix.NFT_MSG_DELCHAIN, op.Table, unix.NFTA_CHAIN_TABLE, unix.NFTA_CHAIN_NAME, op.Name)
		delete(e.tails, chainID{op.Table, op.Name})
	case AddRule:
		return -1, e.addRule(op)
	case DeleteRule:
		return -1, e.deleteRule(op)
	case AddSet:
		e.ids++
		return -1, e.addSet(op.Table, op.Set, e.ids, 0)
	case DeleteSet:
		e.named(unix.NFT_MSG_DELSET, op.Table, unix.NFTA_SET_TABLE, unix.NFTA_SET_NAME, op.Name)
	case FlushSet:
		e.named(unix.NFT_MSG_DELSETELEM, op.Table, unix.NFTA_SET_ELEM_LIST_TABLE, unix.NFTA_SET_ELEM_LIST_SET, op.Name)
	case AddObject:
		return -1, e.addObject(op)
	case DeleteObject:
		return -1, e.deleteObject(op)
	case AddFlowtable:
		return -1, e.addFlowtable(op)
	case DeleteFlowtable:
		e.named(unix.NFT_MSG_DELFLOWTABLE, op.Table, nftaFlowtableTable, nftaFlowtableName, op.Name)
	case AddElements:
		return e.changeElements(elementsOp{table: op.Table, set: op.Set, elements: op.Elements, add: true})
	case DeleteElements:
		return e.changeElements(elementsOp{table: op.Table, set: op.Set, elements: op.Elements})
	default:
		return -1, fmt.Errorf("unknown op %T", op)
	}
	return -1, nil
}

// checkTable refuses ops on tables that are not the connection's.
func (e *encoder) checkTable(op Op) error {
	if op == nil {
		return errors.New("op is nil")
	}
	if _, isAdd := op.(AddTable); isAdd || e.ours == nil {
		return nil
	}
	id := op.table()
	if !e.mayChange(id) {
		return fmt.Errorf("table %s: %w", id, ErrNotClaimed)
	}
	return nil
}

// mayChange reports whether the table is the connection's at this place of the
// batch.
func (e *encoder) mayChange(id nft.TableID) bool {
	if here, ok := e.tables[id]; ok {
		return here
	}
	return e.ours != nil && e.ours(id)
}

// setTable records that the batch creates or deletes a table.
func (e *encoder) setTable(id nft.TableID, exists, fresh bool) {
	if e.tables == nil {
		e.tables, e.fresh = map[nft.TableID]bool{}, map[nft.TableID]bool{}
	}
	e.tables[id], e.fresh[id] = exists, fresh
}

func (e *encoder) addTable(op AddTable) error {
	if err := checkName("table", op.Table.Name); err != nil {
		return err
	}
	userData, err := userdata.Table(op.Comment)
	if err != nil {
		return err
	}
	known := e.mayChange(op.Table)
	flags := uint16(unix.NLM_F_CREATE)
	if !known {
		flags |= unix.NLM_F_EXCL
	}
	at := e.begin(msgType(unix.NFT_MSG_NEWTABLE), flags, uint8(op.Table.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_TABLE_NAME, op.Table.Name)
	// Of a table that is there the flags can change, but for those of ownership.
	owner := e.owner
	if known && !e.fresh[op.Table] && e.protected != nil {
		owner = e.protected(op.Table)
	}
	e.buf = attr.AppendUint32BE(e.buf, nftaTableFlags, tableFlags(owner, op.Dormant))
	e.buf = attr.AppendBytes(e.buf, nftaTableUserData, userData)
	closeMessage(e.buf, at)
	e.setTable(op.Table, true, !known || e.fresh[op.Table])
	return nil
}

// tableFlags returns the flags of tables that this connection has made or claimed.
func tableFlags(owner, dormant bool) uint32 {
	var flags uint32
	if owner {
		flags = tableFlagsWhenOwned
	}
	if dormant {
		flags |= unix.NFT_TABLE_F_DORMANT
	}
	return flags
}

func (e *encoder) deleteTable(id nft.TableID) {
	at := e.begin(msgType(unix.NFT_MSG_DELTABLE), 0, uint8(id.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_TABLE_NAME, id.Name)
	closeMessage(e.buf, at)
	e.setTable(id, false, false)
	for chain := range e.tails {
		if chain.table == id {
			delete(e.tails, chain)
		}
	}
}

// named appends a message that only names an object.
func (e *encoder) named(typ int, table nft.TableID, tableAttr, nameAttr uint16, name string) {
	at := e.begin(msgType(typ), 0, uint8(table.Family), -1)
	e.buf = attr.AppendString(e.buf, tableAttr, table.Name)
	e.buf = attr.AppendString(e.buf, nameAttr, name)
	closeMessage(e.buf, at)
}

func (e *encoder) addChain(op AddChain) error {
	if op.Chain == nil {
		return errors.New("chain is nil")
	}
	if err := checkName("chain", op.Chain.Name); err != nil {
		return err
	}
	userData, err := userdata.Chain(op.Chain.Comment)
	if err != nil {
		return err
	}
	base := op.Chain.Base
	flags := uint16(unix.NLM_F_CREATE)
	if base == nil {
		// There is nothing to change about a regular chain.
		flags |= unix.NLM_F_EXCL
	}
	at := e.begin(msgType(unix.NFT_MSG_NEWCHAIN), flags, uint8(op.Table.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_CHAIN_TABLE, op.Table.Name)
	e.buf = attr.AppendString(e.buf, unix.NFTA_CHAIN_NAME, op.Chain.Name)
	if base != nil {
		e.appendHook(base)
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_CHAIN_POLICY, policy(base.Drop))
		e.buf = attr.AppendString(e.buf, unix.NFTA_CHAIN_TYPE, base.Type)
	}
	if len(userData) > 0 {
		e.buf = attr.AppendBytes(e.buf, nftaChainUserData, userData)
	}
	closeMessage(e.buf, at)
	if base == nil || e.fresh[op.Table] {
		if e.tails == nil {
			e.tails = map[chainID]*Handle{}
		}
		if id := (chainID{op.Table, op.Chain.Name}); base == nil || e.tails[id] == nil {
			e.tails[id] = nil
		}
	}
	return nil
}

// policy returns the verdict of a chain's end: NF_DROP or NF_ACCEPT.
func policy(drop bool) uint32 {
	if drop {
		return 0
	}
	return 1
}

// checkName keeps names out that the kernel would cut short.
func checkName(object, name string) error {
	if name == "" || len(name) > datatype.MaxName || strings.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("name %.40q of the %s: want 1 to %d bytes without NUL", name, object, datatype.MaxName)
	}
	return nil
}
