package render

import (
	"net/netip"
	"strconv"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// listenerKey is a port of an address on which a Service accepts flows, or with the zero
// address a NodePort.
type listenerKey struct {
	addr     netip.Addr
	port     uint16
	protocol model.Protocol
	family   model.Family
}

func (k listenerKey) nodePort() bool { return !k.addr.IsValid() }

// append writes the part of an element's key that is the listener's, without the slot.
func (k listenerKey) append(b []byte) []byte {
	if !k.nodePort() {
		b = append(k.addr.AppendTo(b), separator...)
	}
	b = append(append(b, k.protocol.String()...), separator...)
	return strconv.AppendUint(b, uint64(k.port), 10)
}

func (k listenerKey) String() string { return string(k.append(nil)) }

// role is a purpose of the elements of a listener, besides slots.
type role uint8

const (
	// roleService decides about new flows to the listener.
	roleService role = iota
	// roleShortcut decides about those that may take a shortcut.
	roleShortcut
	// roleNoEndpoint decides about those that no other role handled.
	roleNoEndpoint
	// roleLimited drops sources that are not in the source ranges.
	roleLimited
	// roleRemember remembers where flows to it went.
	roleRemember
	// roleCounted means that new connections are counted.
	roleCounted
	numRoles
)

// roleSets are the sets and maps of the roles, by NodePort (1) or address (0). NodePorts
// have no source ranges.
var roleSets = [2][numRoles]set{
	{roleService: services, roleShortcut: shortcuts, roleNoEndpoint: noEndpoints, roleRemember: stickyServices,
		roleLimited: sourceRanges, roleCounted: serviceConnections},
	{roleService: nodePorts, roleShortcut: nodePortShortcuts, roleNoEndpoint: noEndpointNodePorts, roleRemember: stickyNodePorts,
		roleCounted: nodePortConnections},
}

// slotSets are the maps of slots, by NodePort or address.
var slotSets = [2]set{endpoints, nodePortEndpoints}

// listener is an address, protocol and port on which a Service accepts flows, as it is
// rendered.
type listener struct {
	key listenerKey
	// port is the name of the Service's port.
	port string
	// main has the endpoints of the listener's list. local has those for the traffic
	// policy Local if the listener has both lists, and is nil otherwise. Pools are
	// shared; an update may pass them on to the listener that replaces this one.
	main, local *pool
	verdicts    [numRoles]verdict
	// total is the number of slots of main when the listener was rendered; active and
	// kept are the numbers of slots that got new flows, in main and in local.
	total, active, kept int32
	list                list
	// sources may reach the listener.
	sources sources
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
func (f *listener) in(r role) set { return roleSets[index(f.key.nodePort())][r] }

// measure stores the numbers of endpoints.
func (f *listener) measure() {
	f.total, f.active, f.kept = int32(f.main.slots.len()), int32(f.main.active), 0
	if f.local != nil {
		f.kept = int32(f.local.active)
	}
}

// decide sets the verdicts for traffic from inside or outside the cluster; elsewhere is
// true if there are endpoints on other nodes.
func (f *listener) decide(inside, local, elsewhere bool) {
	nodePort := uint8(index(f.key.nodePort()))
	to := func(w way, n int32) verdict {
		if f.sticky == nil {
			return verdict{to: pick, nodePort: nodePort, way: w, n: n}
		}
		if w == direct && inside && f.list == byLocal {
			w = internal
		}
		f.sticky.shape.picks[nodePort][w] = n
		f.verdicts[roleRemember] = verdict{to: remember}
		return verdict{to: recall, nodePort: nodePort, way: w}
	}
	none := verdict{to: rejected}
	if elsewhere {
		none.to = dropped
	}
	n, l := f.active, f.kept
	switch {
	case inside && n > 0:
		f.verdicts[roleService] = to(direct, n)
	case inside:
		f.verdicts[roleNoEndpoint] = none
	case !local && n > 0:
		f.verdicts[roleService] = to(masqueraded, n)
	case !local || n == 0 && l == 0:
		f.verdicts[roleNoEndpoint] = verdict{to: rejected}
	default:
		if n > 0 {
			f.verdicts[roleShortcut] = to(direct, n)
		}
		if l > 0 {
			f.verdicts[roleService] = to(kept, l)
			break
		}
		f.verdicts[roleService], f.verdicts[roleNoEndpoint] = verdict{to: shortcut, nodePort: nodePort}, verdict{to: dropped}
	}
	if f.sources != "" {
		f.verdicts[roleLimited] = verdict{to: present}
	}
}

// pool returns the pool of a listener for a list, nil if it has none.
func (f *listener) pool(l list) *pool {
	switch {
	case f.list == l:
		return f.main
	case l == byLocal:
		return f.local
	default:
		return nil
	}
}

// group is the first n slots of a pool, in one map.
type group struct {
	in   set
	base int
	pool *pool
	n    int
}

// numGroups is the maximum number of groups of a listener.
const numGroups = 2

// groups returns the slots by list. The index of a group is fixed; a group without
// endpoints is empty.
func (f *listener) groups() (out [numGroups]group) {
	if f == nil {
		return out
	}
	in := slotSets[index(f.key.nodePort())]
	out[0] = group{in: in, pool: f.main, n: int(f.total)}
	out[1] = group{in: in, base: localSlots, pool: f.local, n: int(f.kept)}
	return out
}

// elements returns the number of filled slots.
func (f *listener) elements() (n int) {
	for _, g := range f.groups() {
		n += g.n
	}
	return n
}

// appendValue writes the value of a slot.
func (g *group) appendValue(b []byte, slot int) []byte {
	return appendEndpoint(b, g.pool.slots.at(slot))
}

// appendEndpoint writes an endpoint.
func appendEndpoint(b []byte, ep netip.AddrPort) []byte {
	b = append(ep.Addr().AppendTo(b), separator...)
	return strconv.AppendUint(b, uint64(ep.Port()), 10)
}
