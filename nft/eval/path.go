package eval

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
)

// MaxOutcomes is the greatest number of outcomes that Evaluate returns.
const MaxOutcomes = 256

// Route is a routing decision: the packet is for the node itself, or leaves through Out, or is
// dropped.
type Route struct {
	Local bool
	Out   Interface
	// Drop is why the packet is dropped, such as "no route to host". It is empty otherwise.
	Drop string
}

// Host answers questions about the routes and addresses of the node. A nil function, and an
// answer whose ok is false, mean that the answer is not known. The functions may not change
// the packet.
type Host struct {
	// Route returns the route of a packet.
	Route func(p *Packet) (route Route, ok bool)
	// AddressType returns the type of an address in the routing tables (RTN_*), as fib reports
	// it if no interface is given.
	AddressType func(addr netip.Addr) (rtn uint32, ok bool)
	// Reaches reports whether the routing tables have a route to an address through an interface.
	Reaches func(addr netip.Addr, through Interface) (reached, ok bool)
	// Address returns the address of the interface that the kernel chooses to masquerade a
	// packet, or to redirect one that came in through it.
	Address func(i Interface, p *Packet) (addr netip.Addr, ok bool)
}

// Evaluate returns what can happen to a packet. One with an interface In comes from outside
// and begins at prerouting; others begin at output. If there are more than MaxOutcomes,
// the others are left out and complete is false. The error is about a malformed packet.
func Evaluate(rules *Ruleset, p Packet, host Host) (outcomes []Outcome, complete bool, err error) {
	h, err := p.parse()
	if err != nil {
		return nil, false, fmt.Errorf("evaluate packet: %w", err)
	}
	outcomes, complete = explore(rules, p, host, h, (*machine).run)
	return outcomes, complete, nil
}

// explore runs the evaluation again for each combination of choices.
func explore(rules *Ruleset, p Packet, host Host, h headers, run func(*machine)) (outcomes []Outcome, complete bool) {
	// taken are the indexes of the choices of the next run; those after them are 0.
	var taken []int
	for len(outcomes) < MaxOutcomes {
		m := &machine{rules: rules, host: host, headers: h, taken: taken}
		m.out.Packet = p
		m.out.Traced = -1
		if p.Conn != nil {
			conn := *p.Conn
			m.out.Packet.Conn = &conn
		}
		m.attempt(run)
		if m.out.Traced < 0 {
			m.out.Traced = len(m.out.Steps)
		}
		outcomes = append(outcomes, m.out)
		// The next combination: the last choice that has another result.
		taken = slices.Clone(m.taken)
		for len(taken) > 0 && taken[len(taken)-1]+1 >= m.sizes[len(taken)-1] {
			taken = taken[:len(taken)-1]
		}
		if len(taken) == 0 {
			return outcomes, true
		}
		taken[len(taken)-1]++
	}
	return outcomes, false
}

// end is the panic that ends a run early. It never leaves attempt.
type end struct {
	verdict Verdict
	reason  string
}

// undecided ends the run because something is not known.
func undecided(format string, args ...any) { panic(end{Undecided, fmt.Sprintf(format, args...)}) }

// attempt runs the evaluation for one combination of choices.
func (m *machine) attempt(run func(*machine)) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(end)
			if !ok {
				panic(r)
			}
			m.out.Verdict, m.out.Reason = e.verdict, e.reason
		}
	}()
	run(m)
}

// run moves the packet through the hooks.
func (m *machine) run() {
	p := &m.out.Packet
	if p.In == (Interface{}) {
		m.route()
		m.pass(hookOutput)
		local := m.route() // the output hook may have changed the destination
		m.pass(hookPostrouting)
		if local {
			// The packet comes back through the loopback device, with its connection as it is: no nat chain
			// sees it again.
			p.In, p.Out, m.looped = p.Out, Interface{}, true
			m.pass(hookPrerouting)
			m.pass(hookInput)
		}
		return
	}
	m.pass(hookPrerouting)
	if m.route() {
		m.pass(hookInput)
		return
	}
	m.decreaseTTL()
	m.pass(hookForward)
	m.pass(hookPostrouting)
}

// route asks for the route of the packet, and reports whether it is for the node.
func (m *machine) route() (local bool) {
	var r Route
	ok := m.host.Route != nil
	if ok {
		r, ok = m.host.Route(&m.out.Packet)
	}
	if !ok {
		undecided("the route to %s is not known", m.out.Packet.Destination())
	}
	if r.Drop != "" {
		panic(end{Drop, r.Drop})
	}
	m.out.Packet.Out = r.Out
	if r.Local && m.out.Packet.In == (Interface{}) {
		m.out.Packet.Out = loopback
	}
	return r.Local
}

// loopback is the device of packets that the node sends to itself. It is the first one of each network namespace.
var loopback = Interface{Index: 1, Name: "lo"}

// decreaseTTL does what the kernel does before the forward hook.
func (m *machine) decreaseTTL() {
	p, at := &m.out.Packet, 7
	if m.headers.family == nft.FamilyIP {
		at = 8
	}
	if p.Data[at] <= 1 {
		panic(end{Drop, "its time to live ends here"})
	}
	p.write(m.headers, at, []byte{p.Data[at] - 1}, false)
}

// pass runs the base chains of a hook.
func (m *machine) pass(hook uint32) {
	m.hook, m.bound = hook, false
	tracked, followed := hook != hookPrerouting && hook != hookOutput, hook == hookForward || !m.follows()
	for _, b := range m.rules.BaseChains(m.headers.family, hook) {
		m.current = b
		if !tracked && b.Base.Priority > conntrackPriority {
			m.track()
			tracked = true
		}
		if !followed && (b.isNAT() || m.pastTranslation()) {
			m.follow()
			followed = true
		}
		if b.isNAT() && !m.translates() {
			continue
		}
		m.baseChain()
	}
	if !tracked {
		m.track()
	}
	if !followed {
		m.follow()
	}
}

// baseChain runs the current base chain.
func (m *machine) baseChain() {
	b := m.current
	v := m.chain(b.Chain)
	if v.Code != datatype.VerdictAccept && v.Code != datatype.VerdictDrop {
		v = set.Verdict{Code: datatype.VerdictAccept}
		if b.Base.Drop {
			v.Code = datatype.VerdictDrop
		}
		m.step(Step{Chain: b.Chain.Decl.Name, Verdict: v})
	}
	if v.Code == datatype.VerdictDrop {
		panic(end{verdict: Drop})
	}
}

// translates reports whether the nat chains of the hook see the packet.
func (m *machine) translates() bool {
	switch conn := m.out.Packet.Conn; {
	case m.bound || m.looped:
		return false
	case conn == nil:
		undecided("it is not known whether the packet is the first of its connection")
	case conn.State == StateNew:
		return true
	}
	return false
}

// step records a step.
func (m *machine) step(s Step) {
	s.Table, s.Hook = m.current.Table.ID, m.hook
	if m.out.Packet.Trace && m.out.Traced < 0 {
		m.out.Traced = len(m.out.Steps)
	}
	m.out.Steps = append(m.out.Steps, s)
}
