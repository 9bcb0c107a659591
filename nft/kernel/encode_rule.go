package kernel

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/set"
)

// A rule references its anonymous sets by number; they precede it.
func (e *encoder) addRule(op AddRule) error {
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
		e.echoes = append(e.echoes, echo{message: len(e.messages), rule: op})
	}
	position, err := e.position(op)
	if err != nil {
		return err
	}
	if position.append {
		flags |= unix.NLM_F_APPEND
	}
	e.open(unix.NFT_MSG_NEWRULE, flags, op.Table)
	e.string(unix.NFTA_RULE_CHAIN, op.Chain)
	if len(expressions) > attr.MaxLen-attr.HeaderLen {
		return fmt.Errorf("expressions of the rule have %d bytes: want at most %d", len(expressions), attr.MaxLen-attr.HeaderLen)
	}
	e.bytes(unix.NFTA_RULE_EXPRESSIONS|unix.NLA_F_NESTED, expressions)
	e.bytes(unix.NFTA_RULE_USERDATA, userData)
	switch {
	case position.handle != 0:
		e.uint64(unix.NFTA_RULE_POSITION, position.handle)
	case position.id != 0:
		e.uint32(nftaRulePositionID, position.id)
	}
	if op.Handle != nil {
		e.ids++
		if e.rules == nil {
			e.rules = map[*Handle]uint32{}
		}
		e.rules[op.Handle] = e.ids
		e.uint32(unix.NFTA_RULE_ID, e.ids)
	}
	return nil
}

// With append, the place is after the rule with the handle or id, or the chain's end if both are 0.
// Otherwise it is the head of the chain.
type position struct {
	append bool
	handle uint64
	id     uint32
}

// Successive rules of a chain created in the batch need no id: the kernel walks the whole batch for
// an id, so loading a long chain would be quadratic.
func (e *encoder) position(op AddRule) (position, error) {
	id := chainID{op.Table, op.Chain}
	tail, created := e.tails[id]
	if created && op.After == tail {
		e.tails[id] = op.Handle
		if op.Handle == nil {
			e.tails[id] = new(Handle) // no rule can be added after this one
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
		return position{}, errors.New("the rule to add after has no handle: it is neither committed nor earlier in the batch")
	}
	return position{append: true, handle: op.After.N}, nil
}

func (e *encoder) deleteRule(op DeleteRule) error {
	ruleID, inBatch := e.rules[op.Handle]
	if !inBatch && op.Handle.N == 0 {
		return errors.New("the rule has no handle: it is neither committed nor earlier in the batch")
	}
	e.remove(unix.NFT_MSG_DELRULE, op.Table, unix.NFTA_RULE_CHAIN, op.Chain)
	if !inBatch {
		e.uint64(unix.NFTA_RULE_HANDLE, op.Handle.N)
		return nil
	}
	e.uint32(unix.NFTA_RULE_ID, ruleID)
	delete(e.rules, op.Handle)
	delete(e.tails, chainID{op.Table, op.Chain})
	e.echoes = slices.DeleteFunc(e.echoes, func(x echo) bool { return x.rule.Handle == op.Handle })
	return nil
}

func (e *encoder) addAnonymous(table nft.TableID, set set.Anonymous, id uint32) error {
	if err := e.addSet(table, set.Set, id, len(set.Elements)); err != nil {
		return err
	}
	if len(set.Elements) == 0 {
		return nil
	}
	i, err := e.changeElements(elementsOp{
		table: table, set: set.Set, elements: set.Elements, add: true, first: true, setID: id,
	})
	if err != nil && i >= 0 {
		return fmt.Errorf("element %d: %w", i, err)
	}
	return err
}
