package kernel

import (
	"errors"
	"fmt"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
)

// TableInfo describes a table of any program.
type TableInfo struct {
	ID nft.TableID
	// Ours means weft's mark.
	Ours    bool
	Comment string
	// Owner is the netlink port of the owning socket, or 0. With Persist the table outlives the
	// socket.
	Owner   uint32
	Persist bool
	Dormant bool
}

// Tables lists the tables of all programs. Errors are as for Survey.
func (c *Conn) Tables() ([]TableInfo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tables, err := c.listTables()
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	return tables, nil
}

// Survey describes any table: its chains, and the jumps of their rules.
type Survey struct {
	ID     nft.TableID
	Ours   bool
	Chains []SurveyChain
}

// SurveyChain is a chain; Base is nil for a regular one.
type SurveyChain struct {
	Name  string
	Base  *object.Base
	Rules []SurveyRule
}

// SurveyRule is a rule.
type SurveyRule struct {
	Handle uint64
	// Target is the chain of the first jump or goto outside of verdict maps, or empty.
	Target string
}

// Removal lists parts of a foreign table.
type Removal struct {
	Table nft.TableID
	// Whole removes the table; the other fields are ignored.
	Whole bool
	// Rules are removed first, then all rules of the Flush chains, then the empty Chains.
	Rules  []RemovalRule
	Flush  []string
	Chains []string
}

// RemovalRule is a rule.
type RemovalRule struct {
	Chain  string
	Handle uint64
}

// Survey reads a table; nil if missing. Simultaneous changes can mix contents. Errors are ErrBusy,
// ErrMalformed, ErrClosed, and errors of the system calls.
func (c *Conn) Survey(id nft.TableID) (*Survey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := c.table(id)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil //nolint:nilnil // a missing table is not an error
	}
	if err != nil {
		return nil, err
	}
	chains, err := c.listChains(id)
	if err != nil {
		return nil, fmt.Errorf("survey table %s: %w", id, err)
	}
	rules, err := listRules(&c.link, id, "", decodeJump)
	if err != nil {
		return nil, fmt.Errorf("survey table %s: %w", id, err)
	}
	byChain := make(map[string][]SurveyRule, len(chains))
	for _, r := range rules {
		byChain[r.chain] = append(byChain[r.chain], r.SurveyRule)
	}
	s := &Survey{ID: id, Ours: info.Ours}
	for _, chain := range chains {
		s.Chains = append(s.Chains, SurveyChain{Name: chain.Name, Base: chain.Base, Rules: byChain[chain.Name]})
	}
	return s, nil
}

type jump struct {
	SurveyRule
	chain string
}

func decodeJump(m reply) (j jump, err error) {
	r, list, err := readRule(m)
	if err != nil {
		return j, err
	}
	j = jump{SurveyRule{Handle: r.handle}, r.chain}
	exprs, err := expr.Decode(list)
	for _, e := range exprs {
		if v, ok := expr.Unwrap(e).(*google.Verdict); ok && j.Target == "" {
			j.Target = v.Chain
		}
	}
	return j, err
}

// RemoveForeign removes parts of foreign tables in one transaction, for an operator who replaces
// another program by weft. A table of weft (ErrOurs) or a missing table (ENOENT) stops it before
// any effect. It does not detect simultaneous changes.
func (c *Conn) RemoveForeign(removals ...Removal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ops []Op
	for _, r := range removals {
		info, err := c.table(r.Table)
		if err != nil {
			return err
		}
		if info.Ours {
			return fmt.Errorf("remove from table %s: %w", r.Table, ErrOurs)
		}
		ops = append(ops, r.ops()...)
	}
	e := &encoder{features: c.features, buffer: buffer{seq: c.seq}}
	if err := e.batch(ops); err != nil {
		return err
	}
	result, err := c.send(e)
	if err == nil {
		err = c.rejection(e, result, ops)
	}
	return withContext("remove rules of other programs", err)
}

func (r *Removal) ops() []Op {
	if r.Whole {
		return []Op{DeleteTable{r.Table}}
	}
	var ops []Op
	for _, rule := range r.Rules {
		ops = append(ops, DeleteRule{r.Table, rule.Chain, &Handle{N: rule.Handle}})
	}
	for _, chain := range r.Flush {
		ops = append(ops, flushChain{r.Table, chain})
	}
	for _, chain := range r.Chains {
		ops = append(ops, DeleteChain{r.Table, chain})
	}
	return ops
}

type flushChain struct {
	Table nft.TableID
	Name  string
}

func (o flushChain) table() nft.TableID { return o.Table }
