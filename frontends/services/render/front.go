package render

import (
	"net/netip"
	"strconv"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// frontKey is where a Service answers: a port of an address, or with the zero
// address a NodePort.
type frontKey struct {
	addr     netip.Addr
	port     uint16
	protocol model.Protocol
	family   model.Family
}

func (k frontKey) nodePort() bool { return !k.addr.IsValid() }

// append writes the key's part of an element key, without slot.
func (k frontKey) append(b []byte) []byte {
	if !k.nodePort() {
		b = k.addr.AppendTo(b)
		b = append(b, " . "...)
	}
	b = append(b, k.protocol.String()...)
	b = append(b, " . "...)
	return strconv.AppendUint(b, uint64(k.port), 10)
}

func (k frontKey) String() string { return string(k.append(nil)) }

// role is what a front can have an element for, besides its slots.
type role uint8

const (
	// answers says what happens to new flows to the front.
	answers role = iota
	// cuts says it for those that take a shortcut.
	cuts
	// unserved says it where nothing else did.
	unserved
	// limited is whether there are source ranges.
	limited
	numRoles
)

// roleSets are the sets and maps of the roles, by NodePort (1) or address (0).
// NodePorts have no source ranges.
var roleSets = [2][numRoles]set{
	{answers: services, cuts: shortcuts, unserved: noEndpoints, limited: firewalled},
	{answers: nodePorts, cuts: nodePortShortcuts, unserved: noEndpointNodePorts},
}

// slotSets have the slots by NodePort or address, and affinity (1) or none (0).
var slotSets = [2][2]set{
	{endpoints, stickyEndpoints},
	{nodePortEndpoints, nodePortStickyEndpoints},
}

// front is one place where a Service answers, as it is rendered.
type front struct {
	key frontKey
	// port is the name of the Service's port.
	port string
	// main has the endpoints of the list that the front is for, local those for
	// the traffic policy Local of a front that has both; else it is nil. They are
	// shared, and those of a front that an update replaces may be of the next one.
	main, local *pool
	verdicts    [numRoles]verdict
	// total, active and kept are how many slots main had, how many of them got new
	// flows, and how many did in local, when the front was rendered.
	total, active, kept int32
	list                list
	// sources are who may reach the front, if it is limited.
	sources []netip.Prefix
	// sticky is nil without session affinity.
	sticky *affinity
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// in returns the set of a role.
func (f *front) in(r role) set { return roleSets[index(f.key.nodePort())][r] }

// measure notes how many endpoints there are.
func (f *front) measure() {
	f.total, f.active, f.kept = int32(f.main.slots.len()), int32(f.main.active), 0
	if f.local != nil {
		f.kept = int32(f.local.active)
	}
}

// decide works out the verdicts, for traffic from inside or outside of the
// cluster; elsewhere is whether there are endpoints on other nodes.
func (f *front) decide(inside, local, elsewhere bool) {
	kinds := &picks[index(f.key.nodePort())][index(f.sticky != nil)]
	none := verdict{to: rejected}
	if elsewhere {
		none.to = dropped
	}
	n, l := f.active, f.kept
	switch {
	case inside && n > 0:
		f.verdicts[answers] = verdict{kinds[direct], n}
	case inside:
		f.verdicts[unserved] = none
	case !local && n > 0:
		f.verdicts[answers] = verdict{kinds[masqueraded], n}
	case !local:
		f.verdicts[unserved] = verdict{to: rejected}
	default:
		if n > 0 {
			f.verdicts[cuts] = verdict{kinds[direct], n}
		}
		switch {
		case l > 0:
			f.verdicts[answers] = verdict{kinds[kept], l}
		case n > 0 && f.key.nodePort():
			f.verdicts[answers], f.verdicts[unserved] = verdict{to: nodePortShortcut}, verdict{to: dropped}
		case n > 0:
			f.verdicts[answers], f.verdicts[unserved] = verdict{to: shortcut}, verdict{to: dropped}
		default:
			f.verdicts[unserved] = verdict{to: rejected}
		}
	}
	if f.sources != nil {
		f.verdicts[limited] = verdict{to: present}
	}
}

// pool returns the pool that a front has for a list, nil if it has none.
func (f *front) pool(l list) *pool {
	switch {
	case f.list == l:
		return f.main
	case l == byLocal:
		return f.local
	default:
		return nil
	}
}

// group is a run of slots in one map: the first n of a pool.
type group struct {
	in   set
	base int
	pool *pool
	n    int
	// remember begins the names of the chains that the slots go to; empty where
	// the slots have the endpoints themselves.
	remember string
}

// numGroups is how many groups a front can have.
const numGroups = 4

// groups returns the slots as they are in maps. The place of a group in the result
// says which one it is; one without endpoints is not there. UDP fronts have all
// endpoints in a map of conntrack's, with affinity too.
func (f *front) groups() (out [numGroups]group) {
	if f == nil {
		return out
	}
	in := &slotSets[index(f.key.nodePort())]
	if f.sticky == nil || f.key.protocol == model.UDP {
		out[0] = group{in: in[0], pool: f.main, n: int(f.total)}
		out[1] = group{in: in[0], base: localSlots, pool: f.local, n: int(f.kept)}
	}
	if f.sticky != nil {
		out[2] = group{in: in[1], pool: f.main, n: int(f.active), remember: f.sticky.chainPrefix(f.list)}
		out[3] = group{in: in[1], base: localSlots, pool: f.local, n: int(f.kept), remember: f.sticky.chainPrefix(byLocal)}
	}
	return out
}

// elements returns how many slots are filled.
func (f *front) elements() (n int) {
	for _, g := range f.groups() {
		n += g.n
	}
	return n
}

// appendValue writes the value of a slot.
func (g *group) appendValue(b []byte, slot int) []byte {
	ep := g.pool.slots.at(slot)
	if g.remember == "" {
		return appendEndpoint(b, ep)
	}
	return append(append(b, "goto "...), rememberName(g.remember, ep)...)
}

func appendEndpoint(b []byte, ep netip.AddrPort) []byte {
	b = ep.Addr().AppendTo(b)
	b = append(b, " . "...)
	return strconv.AppendUint(b, uint64(ep.Port()), 10)
}
