package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/object"
)

// Survey is what is read of any table, weft's or not: its chains, and which
// other chains their rules lead to.
type Survey struct {
	ID nft.TableID
	// Ours is true for a table that weft made.
	Ours   bool
	Chains []SurveyChain
}

// SurveyChain is a chain of a Survey. Base is nil for a chain that is no base chain.
type SurveyChain struct {
	Name  string
	Base  *object.Base
	Rules []SurveyRule
}

// SurveyRule is a rule of a Survey.
type SurveyRule struct {
	Handle uint64
	// Target is the chain that the rule jumps or goes to, empty for none. Chains
	// in verdict maps are not seen.
	Target string
}

// Removal is what is to go of a table that weft did not make.
type Removal struct {
	Table nft.TableID
	// Whole removes the table with all that is in it; the rest is then unused.
	Whole bool
	// Rules go first, then everything in the Flush chains, then the Chains, which must be empty by then.
	Rules  []RemovalRule
	Flush  []string
	Chains []string
}

// RemovalRule is one rule to remove.
type RemovalRule struct {
	Chain  string
	Handle uint64
}

// Survey reads a table, whoever made it; nil where there is none. A table that
// changes meanwhile may be read half old, half new.
func (c *Conn) Survey(id nft.TableID) (*Survey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := c.table(id)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil //nolint:nilnil // there is no such table, and that is no error
	}
	if err != nil {
		return nil, err
	}
	s := &Survey{ID: id, Ours: info.ours}
	index := map[string]int{}
	reset := func() { s.Chains = s.Chains[:0] }
	err = c.dump(unix.NFT_MSG_GETCHAIN, id.Family, nil, reset, func(m reply) error {
		chain, err := decodeChain(m, id.Name)
		if err == nil && chain != nil {
			index[chain.Name] = len(s.Chains)
			s.Chains = append(s.Chains, SurveyChain{Name: chain.Name, Base: chain.Base})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list chains of table %s: %w", id, err)
	}
	request := attr.AppendString(nil, unix.NFTA_RULE_TABLE, id.Name)
	reset = func() {
		for i := range s.Chains {
			s.Chains[i].Rules = nil
		}
	}
	err = c.dumpInTable(unix.NFT_MSG_GETRULE, id.Family, request, reset, func(m reply) error {
		r, err := decodeRule(m)
		if err != nil || r.table != id.Name {
			return err
		}
		target, err := ruleTarget(m)
		if i, ok := index[r.chain]; ok {
			s.Chains[i].Rules = append(s.Chains[i].Rules, SurveyRule{Handle: r.handle, Target: target})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list rules of table %s: %w", id, err)
	}
	return s, nil
}

// ruleTarget returns the chain of the verdict in a rule.
func ruleTarget(m reply) (string, error) {
	// From the rule's list of expressions down to the name of the chain.
	path := []uint16{
		unix.NFTA_RULE_EXPRESSIONS, unix.NFTA_LIST_ELEM, unix.NFTA_EXPR_DATA,
		unix.NFTA_IMMEDIATE_DATA, unix.NFTA_DATA_VERDICT, unix.NFTA_VERDICT_CHAIN,
	}
	return descend(m.attrs, path)
}

// descend follows a path of nested attributes and returns the string at its
// end: of several ways the first that gets there. The data of expressions other than
// immediate have other attributes under the same numbers, so these are left out.
func descend(b []byte, path []uint16) (string, error) {
	a := attr.NewReader(b)
	for a.Next() {
		if a.Type() != path[0] {
			continue
		}
		if len(path) == 1 {
			return a.Text(), nil
		}
		if path[0] == unix.NFTA_LIST_ELEM && !isImmediate(a.Bytes()) {
			continue
		}
		if s, err := descend(a.Bytes(), path[1:]); s != "" || err != nil {
			return s, err
		}
	}
	return "", a.Err()
}

// isImmediate says whether an expression is the one that holds verdicts.
func isImmediate(b []byte) bool {
	a := attr.NewReader(b)
	for a.Next() {
		if a.Type() == unix.NFTA_EXPR_NAME {
			return a.Text() == "immediate"
		}
	}
	return false
}

// RemoveForeign removes rules, chains and tables that weft did not make, all in
// one transaction. It is for an operator who says so, never for the
// daemon; a table of weft's is refused (ErrOurs).
func (c *Conn) RemoveForeign(removals ...Removal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range removals {
		info, err := c.table(r.Table)
		if err != nil {
			return err
		}
		if info.ours {
			return fmt.Errorf("remove from table %s: %w", r.Table, ErrOurs)
		}
	}
	e := &encoder{ackEnd: c.ackEnd, seq: c.seq, op: -1}
	at := e.begin(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, -1)
	closeMessage(e.buf, at)
	var names []string
	for _, r := range removals {
		names = e.removal(r, names)
	}
	e.end()
	if err := c.sock.reserve(len(e.buf)+sendReserve, min(max(minReceive, len(e.messages)*perError), maxReceive)); err != nil {
		return err
	}
	var first error
	err := c.exchange(e.buf, len(e.messages), func(h header, ke kernelError) error {
		// The begin of the batch comes before what has a name.
		if i := int(h.seq-e.seq) - 1; ke.errno != 0 && first == nil {
			first = ke.errno
			if i >= 0 && i < len(names) {
				first = fmt.Errorf("remove %s: %w", names[i], ke.errno)
			}
		}
		return nil
	})
	return errors.Join(first, err)
}

// removal appends the messages of one table, and their names.
func (e *encoder) removal(r Removal, names []string) []string {
	if r.Whole {
		at := e.begin(msgType(unix.NFT_MSG_DELTABLE), 0, uint8(r.Table.Family), -1)
		e.buf = attr.AppendString(e.buf, unix.NFTA_TABLE_NAME, r.Table.Name)
		closeMessage(e.buf, at)
		return append(names, "table "+r.Table.String())
	}
	for _, rule := range r.Rules {
		at := e.begin(msgType(unix.NFT_MSG_DELRULE), 0, uint8(r.Table.Family), -1)
		e.buf = attr.AppendString(e.buf, unix.NFTA_RULE_TABLE, r.Table.Name)
		e.buf = attr.AppendString(e.buf, unix.NFTA_RULE_CHAIN, rule.Chain)
		e.buf = attr.AppendUint64BE(e.buf, unix.NFTA_RULE_HANDLE, rule.Handle)
		closeMessage(e.buf, at)
		names = append(names, fmt.Sprintf("rule %d of chain %s %s", rule.Handle, r.Table, rule.Chain))
	}
	// A chain named without a rule is all of its rules.
	for _, chain := range r.Flush {
		e.named(unix.NFT_MSG_DELRULE, r.Table, unix.NFTA_RULE_TABLE, unix.NFTA_RULE_CHAIN, chain)
		names = append(names, fmt.Sprintf("rules of chain %s %s", r.Table, chain))
	}
	for _, chain := range r.Chains {
		e.named(unix.NFT_MSG_DELCHAIN, r.Table, unix.NFTA_CHAIN_TABLE, unix.NFTA_CHAIN_NAME, chain)
		names = append(names, fmt.Sprintf("chain %s %s", r.Table, chain))
	}
	return names
}
