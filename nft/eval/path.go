package eval

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
)

// MaxOutcomes limits the outcomes of Evaluate.
const MaxOutcomes = 256

// Route is a routing decision.
type Route struct {
	Local bool
	Out   Interface
	// Router means that the next hop is not the destination.
	Router bool
	// reason of a drop, such as "no route to host"
	Drop string
}

// Host answers questions about the node. A nil function, or an ok of false, means unknown. The
// functions may not change the packet.
type Host struct {
	Route func(p *Packet) (route Route, ok bool)
	// RTN_*, as in fib without an interface
	AddressType func(addr netip.Addr) (rtn uint32, ok bool)
	// Reaches: the routing tables have a route through the interface.
	Reaches func(addr netip.Addr, through Interface) (reached, ok bool)
	// Address returns the node's address for a packet that is masqueraded through the interface, or
	// redirected after it came in there.
	Address func(i Interface, p *Packet) (addr netip.Addr, ok bool)
	// Port returns a bridge's port for packets from and to an address, or zero for another
	// interface. It is called if there are rules of family bridge.
	Port func(bridge Interface, addr netip.Addr) (port Interface, ok bool)
	// Filtered reports whether the IP hooks see a packet from port to port of a bridge
	// (br_netfilter). With Port it must not be nil.
	Filtered func(p *Packet) bool
}

// Evaluate returns the possible outcomes. A packet with an interface In begins at prerouting,
// others at output. complete is false beyond MaxOutcomes. A malformed packet is an error.
func Evaluate(rules *Ruleset, p Packet, host Host) (outcomes []Outcome, complete bool, err error) {
	h, err := p.parse()
	if err != nil {
		return nil, false, fmt.Errorf("evaluate packet: %w", err)
	}
	outcomes, complete = explore(rules, p, host, h, (*machine).run)
	return outcomes, complete, nil
}

func explore(rules *Ruleset, p Packet, host Host, h headers, run func(*machine)) (outcomes []Outcome, complete bool) {
	// later choices are 0
	var taken []int
	for len(outcomes) < MaxOutcomes {
		m := &machine{passage: passage{rules: rules, host: host, headers: h, taken: taken}}
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

// never leaves attempt
type end struct {
	verdict Verdict
	reason  string
}

func undecided(format string, args ...any) { panic(end{Undecided, fmt.Sprintf(format, args...)}) }

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

func (m *machine) run() {
	p := &m.out.Packet
	if p.In == (Interface{}) {
		m.route()
		m.pass(hookOutput)
		local := m.route()
		m.pass(hookPostrouting)
		if local {
			// The packet comes back through lo with the same connection: no nat chain sees it
			// again.
			p.In, p.Out, m.looped = p.Out, Interface{}, true
			m.pass(hookPrerouting)
			m.pass(hookInput)
			return
		}
		m.leave()
		return
	}
	m.inPort = m.port(p.In, p.Source())
	filtered := m.inPort == (Interface{}) || m.host.Filtered != nil && m.host.Filtered(p)
	m.frame(m.inPort, hookPrerouting, 0, filtered)
	if m.switches() {
		m.frame(m.outPort, hookForward, -1, filtered)
		m.inPort = Interface{}
		m.frame(m.outPort, hookPostrouting, math.MaxInt32, filtered)
		return
	}
	m.frame(m.inPort, hookInput, 0, false)
	if !filtered {
		m.pass(hookPrerouting)
	}
	if m.route() {
		m.pass(hookInput)
		return
	}
	m.decreaseTTL()
	m.pass(hookForward)
	m.pass(hookPostrouting)
	m.leave()
}

func (m *machine) leave() {
	m.inPort, m.outPort = Interface{}, m.port(m.out.Packet.Out, m.out.Packet.Destination())
	m.frame(m.outPort, hookOutput, 0, false)
	m.frame(m.outPort, hookPostrouting, 0, false)
}

// port returns zero for an interface that is not a bridge, or without rules about ports.
func (w *passage) port(bridge Interface, addr netip.Addr) Interface {
	if w.host.Port == nil || !slices.ContainsFunc(w.rules.Tables, func(t Table) bool { return t.ID.Family == nft.FamilyBridge }) {
		return Interface{}
	}
	port, ok := w.host.Port(bridge, addr)
	if !ok {
		undecided("the port of bridge %s that leads to %s is not known: ping it", bridge.Name, addr)
	}
	return port
}

// A sender on a bridge is assumed to have the node's route.
func (w *passage) switches() bool {
	p := &w.out.Packet
	if w.inPort == (Interface{}) || w.host.Route == nil {
		return false
	}
	if r, ok := w.host.Route(p); !ok || r.Router || r.Drop != "" || r.Out != p.In {
		return false
	}
	w.track() // the hooks of IP may not
	p.Out, w.outPort = p.In, w.port(p.In, p.Destination())
	return true
}

// frame runs the bridge chains only with a known port. If filtered, the kernel also runs the IP
// chains, after bridge chains up to the priority (enum nf_br_hook_priorities).
func (m *machine) frame(port Interface, hook uint32, priority int32, filtered bool) {
	for _, b := range m.rules.BaseChains(nft.FamilyBridge, hook) {
		if filtered && b.Base.Priority > priority {
			m.pass(hook)
			filtered = false
		}
		if m.hook, m.current = hook, b; port != (Interface{}) {
			m.baseChain()
		}
	}
	if filtered {
		m.pass(hook)
	}
}

func (w *passage) route() (local bool) {
	var r Route
	ok := w.host.Route != nil
	if ok {
		r, ok = w.host.Route(&w.out.Packet)
	}
	if !ok {
		undecided("the route to %s is not known", w.out.Packet.Destination())
	}
	if r.Drop != "" {
		panic(end{Drop, r.Drop})
	}
	w.out.Packet.Out = r.Out
	if r.Local && w.out.Packet.In == (Interface{}) {
		w.out.Packet.Out = loopback
	}
	return r.Local
}

// the first device of each network namespace
var loopback = Interface{Index: 1, Name: "lo"}

func (w *passage) decreaseTTL() {
	p, at := &w.out.Packet, 7
	if w.headers.family == nft.FamilyIP {
		at = 8
	}
	if p.Data[at] <= 1 {
		panic(end{Drop, "its time to live ends here"})
	}
	p.write(w.headers, at, []byte{p.Data[at] - 1}, false)
}

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

func (w *passage) translates() bool {
	switch conn := w.out.Packet.Conn; {
	case w.bound || w.looped:
		return false
	case conn == nil:
		undecided("it is not known whether the packet is the first of its connection")
	case conn.State == StateNew:
		return true
	}
	return false
}

func (w *passage) step(s Step) {
	s.Table, s.Hook = w.current.Table.ID, w.hook
	if w.out.Packet.Trace && w.out.Traced < 0 {
		w.out.Traced = len(w.out.Steps)
	}
	w.out.Steps = append(w.out.Steps, s)
}
