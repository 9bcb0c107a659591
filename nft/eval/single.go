package eval

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/set"
)

// EvaluateChain is Evaluate for one base chain. The caller sets p.Out if the chain sees it. Each
// rule takes 1 from budget; below 0 the outcome is Undecided.
func EvaluateChain(rules *Ruleset, b BaseChain, p Packet, host Host, budget *int) (outcomes []Outcome, complete bool, err error) {
	h, err := p.parse()
	if err != nil {
		return nil, false, fmt.Errorf("evaluate packet: %w", err)
	}
	outcomes, complete = explore(rules, p, host, h, func(m *machine) {
		m.budget = budget
		m.hook, m.current = b.Base.Hook, b
		m.track()
		if !m.current.isNAT() || m.translates() {
			m.baseChain()
		}
	})
	return outcomes, complete, nil
}

// Lister is a Finder that can list its elements.
type Lister interface {
	Finder
	// at most n, in no order
	List(n int) []set.Element
}

// List implements Lister.
func (x *index) List(n int) []set.Element { return x.elements[:min(n, len(x.elements))] }
