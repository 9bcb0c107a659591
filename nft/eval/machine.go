package eval

import (
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// maxDepth is NFT_JUMP_STACK_SIZE; maxSteps ends loops, which only the kernel would reject
const (
	maxDepth = 16
	maxSteps = 1 << 20
)

// passage is the way of a packet through the hooks, for one combination of choices.
type passage struct {
	rules   *Ruleset
	host    Host
	headers headers

	hook            uint32
	current         BaseChain
	inPort, outPort Interface
	// bound: a nat chain of the hook has translated the packet; looped: it came back through lo
	bound  bool
	looped bool

	// taken: the result of each choice; sizes: its number of results; chosen: the next choice
	taken, sizes []int
	chosen       int
	// added by the packet, nil for deleted ones
	changed map[changedKey]*set.Element
	out     Outcome
}

// machine runs the rules of a chain, like nft_do_chain.
type machine struct {
	passage
	verdict   set.Verdict
	registers registers
	lookups   []Lookup
	running   *Rule
	place     *Chain
	rest      []expr.Expr
	executed  int
	// rules that may still run, shared by evaluations; nil if unlimited
	budget *int
}

func (w *passage) choose(what string, n int, probability float64, name func(int) string) int {
	if w.chosen == len(w.taken) {
		w.taken = append(w.taken[:w.chosen:w.chosen], 0)
	}
	i := w.taken[w.chosen]
	w.sizes = append(w.sizes, n)
	w.chosen++
	w.out.Choices = append(w.out.Choices, Choice{What: what, Result: name(i), Probability: probability})
	return i
}

type frame struct {
	chain *Chain
	rules []Rule
	next  int
}

func enter(c *Chain) frame {
	f := frame{chain: c, rules: c.Rules}
	if c.Load != nil {
		var err error
		if f.rules, err = c.Load(); err != nil {
			undecided("chain %s cannot be read: %v", c.Decl.Name, err)
		}
	}
	return f
}

func (m *machine) chain(c *Chain) set.Verdict {
	m.registers = registers{}
	var stack []frame
	at := enter(c)
	for {
		if m.executed++; m.executed > maxSteps {
			undecided("the rules do not end")
		}
		if m.budget != nil {
			if *m.budget--; *m.budget < 0 {
				undecided("too many rules would run")
			}
		}
		v := set.Verdict{Code: datatype.VerdictReturn}
		if at.next < len(at.rules) {
			v = m.rule(at.chain, &at.rules[at.next])
			at.next++
		}
		switch v.Code {
		case datatype.VerdictContinue, datatype.VerdictBreak:
		case datatype.VerdictJump, datatype.VerdictGoto:
			if v.Code == datatype.VerdictJump {
				if len(stack) == maxDepth {
					undecided("more than %d chains are nested", maxDepth)
				}
				stack = append(stack, at)
			}
			next := m.current.Table.chain(v.Chain)
			if next == nil {
				undecided("chain %s does not exist", v.Chain)
			}
			at = enter(next)
		case datatype.VerdictReturn:
			if len(stack) == 0 {
				return v
			}
			at, stack = stack[len(stack)-1], stack[:len(stack)-1]
		case datatype.VerdictAccept, datatype.VerdictDrop:
			return v
		default:
			undecided("verdict %s", v)
		}
	}
}

func (m *machine) rule(c *Chain, r *Rule) set.Verdict {
	m.verdict, m.lookups = set.Verdict{Code: datatype.VerdictContinue}, nil
	m.running, m.place = r, c
	for i, e := range r.Exprs {
		m.rest = r.Exprs[i+1:]
		m.expr(r, e)
		if m.verdict.Code != datatype.VerdictContinue {
			break
		}
	}
	if m.verdict.Code != datatype.VerdictBreak {
		m.step(Step{Chain: c.Decl.Name, Rule: r.Handle, Matched: r, Verdict: m.verdict, Lookups: m.lookups})
	}
	return m.verdict
}

func (m *machine) unknown(e expr.Expr) {
	name, _, _ := strings.Cut(expr.Format(e), " ")
	if u, ok := e.(*expr.Unknown); ok {
		name = u.Name
		if x, ok := readExtension(u); ok {
			name += " " + x.name
		}
	}
	undecided("weft does not know what %s does, in %q of chain %s in table %s", name, m.running, m.place.Decl.Name, m.current.Table.ID)
}

func (m *machine) breakIf(mismatch bool) {
	if mismatch {
		m.verdict.Code = datatype.VerdictBreak
	}
}

// struct nft_regs after the verdict
type registers [4 * expr.Slots]byte

func (r *registers) at(register, n uint32) []byte {
	slot, ok := expr.Slot(register)
	if !ok {
		undecided("unknown register %d", register)
	}
	if n > uint32(len(r))-4*slot {
		undecided("%d bytes do not fit into register %d", n, register)
	}
	return r[4*slot : 4*slot+n]
}

func (r *registers) store(register uint32, value []byte) {
	b := r.at(register, uint32(len(value)+3)&^3)
	clear(b[copy(b, value):])
}
