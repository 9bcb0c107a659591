package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/set"
)

// addRule appends a rule after its anonymous sets, which are known by their
// numbers in the batch.
func (e *encoder) addRule(op AddRule) error {
	if op.Rule == nil {
		return errors.New("rule is nil")
	}
	base := e.ids
	e.ids += uint32(len(op.Rule.Anonymous))
	for i, set := range op.Rule.Anonymous {
		if err := e.addAnonymous(op.Table, set, base+uint32(i)+1); err != nil {
			return fmt.Errorf("anonymous set %d: %w", i+1, err)
		}
	}
	expressions, err := op.Rule.Encode(base)
	if err != nil {
		return err
	}
	userData, err := op.Rule.UserData(op.Owner)
	if err != nil {
		return err
	}
	flags := uint16(unix.NLM_F_CREATE)
	if op.Handle != nil {
		flags |= unix.NLM_F_ECHO
		e.wanted = append(e.wanted, wantedHandle{message: len(e.messages), rule: op})
	}
	position, err := e.position(op)
	if err != nil {
		return err
	}
	if position.append {
		flags |= unix.NLM_F_APPEND
	}
	at := e.begin(msgType(unix.NFT_MSG_NEWRULE), flags, uint8(op.Table.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_RULE_TABLE, op.Table.Name)
	e.buf = attr.AppendString(e.buf, unix.NFTA_RULE_CHAIN, op.Chain)
	var nest int
	e.buf, nest = attr.OpenNested(e.buf, unix.NFTA_RULE_EXPRESSIONS)
	e.buf = append(e.buf, expressions...)
	if len(e.buf)-nest > attr.MaxLen {
		return fmt.Errorf("expressions of the rule take %d bytes: want at most %d", len(expressions), attr.MaxLen-attr.HeaderLen)
	}
	e.buf = attr.Close(e.buf, nest)
	e.buf = attr.AppendBytes(e.buf, unix.NFTA_RULE_USERDATA, userData)
	switch {
	case position.handle != 0:
		e.buf = attr.AppendUint64BE(e.buf, unix.NFTA_RULE_POSITION, position.handle)
	case position.id != 0:
		e.buf = attr.AppendUint32BE(e.buf, nftaRulePositionID, position.id)
	}
	if op.Handle != nil {
		e.ids++
		if e.rules == nil {
			e.rules = map[*Handle]uint32{}
		}
		e.rules[op.Handle] = e.ids
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_RULE_ID, e.ids)
	}
	closeMessage(e.buf, at)
	return nil
}

// position is where a rule goes: with append, after the rule with the handle
// or with the batch's own id, or at the end of the chain; without, at its head.
type position struct {
	append bool
	handle uint64
	id     uint32
}

// position finds a rule's place. Rules that the batch adds one after another
// to a chain of its own just go to the end: the kernel finds an id by a
// walk over the whole batch, which would make the load of a long chain quadratic.
func (e *encoder) position(op AddRule) (position, error) {
	id := chainID{op.Table, op.Chain}
	tail, fresh := e.tails[id]
	if fresh && op.After == tail {
		e.tails[id] = op.Handle
		if op.Handle == nil {
			e.tails[id] = new(Handle) // the tail has no name: nothing goes after it
		}
		return position{append: true}, nil
	}
	if op.After == nil {
		return position{}, nil
	}
	if ruleID, ok := e.rules[op.After]; ok {
		return position{append: true, id: ruleID}, nil
	}
	if op.After.N == 0 {
		return position{}, errors.New("the rule to go after has no handle: it is neither committed nor earlier in the batch")
	}
	return position{append: true, handle: op.After.N}, nil
}

func (e *encoder) deleteRule(op DeleteRule) error {
	if op.Handle == nil {
		return errors.New("handle of the rule is nil")
	}
	ruleID, inBatch := e.rules[op.Handle]
	if !inBatch && op.Handle.N == 0 {
		return errors.New("the rule has no handle: it is neither committed nor earlier in the batch")
	}
	at := e.begin(msgType(unix.NFT_MSG_DELRULE), 0, uint8(op.Table.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_RULE_TABLE, op.Table.Name)
	e.buf = attr.AppendString(e.buf, unix.NFTA_RULE_CHAIN, op.Chain)
	if inBatch {
		e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_RULE_ID, ruleID)
		delete(e.rules, op.Handle)
		delete(e.tails, chainID{op.Table, op.Chain})
		e.unwant(op.Handle)
	} else {
		e.buf = attr.AppendUint64BE(e.buf, unix.NFTA_RULE_HANDLE, op.Handle.N)
	}
	closeMessage(e.buf, at)
	return nil
}

// unwant forgets a rule that the batch itself deletes again.
func (e *encoder) unwant(h *Handle) {
	for i := range e.wanted {
		if e.wanted[i].rule.Handle == h {
			e.wanted = append(e.wanted[:i], e.wanted[i+1:]...)
			return
		}
	}
}

// addAnonymous appends a set that belongs to a rule, and its elements.
func (e *encoder) addAnonymous(table nft.TableID, set set.Anonymous, id uint32) error {
	if err := e.addSet(table, set.Set, id, len(set.Elements)); err != nil {
		return err
	}
	if len(set.Elements) == 0 {
		return nil
	}
	i, err := e.changeElements(elementsOp{
		table: table, set: set.Set, elements: set.Elements, add: true, setID: id,
	})
	if err != nil && i >= 0 {
		return fmt.Errorf("element %d: %w", i, err)
	}
	return err
}
