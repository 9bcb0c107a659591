package render

import (
	"net/netip"
	"strconv"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// A listenerKey without an address is a NodePort.
type listenerKey struct {
	addr     netip.Addr
	port     uint16
	protocol model.Protocol
	family   model.Family
}

func (k listenerKey) nodePort() bool { return !k.addr.IsValid() }

func (k listenerKey) append(b []byte) []byte {
	if !k.nodePort() {
		b = append(k.addr.AppendTo(b), separator...)
	}
	b = append(append(b, k.protocol.String()...), separator...)
	return strconv.AppendUint(b, uint64(k.port), 10)
}

func (k listenerKey) String() string { return string(k.append(nil)) }

type role uint8

const (
	roleService role = iota
	// roleShortcut decides about flows exempt from the policy Local.
	roleShortcut
	// roleNoEndpoint decides about flows left by the other roles.
	roleNoEndpoint
	roleLimited
	roleRemember
	roleCounted
	numRoles
)

// NodePorts have no source ranges.
var roleSets = [2][numRoles]set{
	{roleService: services, roleShortcut: shortcuts, roleNoEndpoint: noEndpoints, roleRemember: stickyServices,
		roleLimited: sourceRanges, roleCounted: serviceConnections},
	{roleService: nodePorts, roleShortcut: nodePortShortcuts, roleNoEndpoint: noEndpointNodePorts, roleRemember: stickyNodePorts,
		roleCounted: nodePortConnections},
}

var slotSets = [2]set{endpoints, nodePortEndpoints}

type listener struct {
	key  listenerKey
	port string
	// main has the endpoints of list. local has the Local endpoints if the listener has both lists, else nil.
	// An update may pass pools to the listener that replaces this one.
	main, local *pool
	verdicts    [numRoles]verdict
	// total is main's slot count at rendering. active and kept count the slots for new flows in main and
	// local.
	total, active, kept int32
	list                list
	sources             sources
	// nil without session affinity
	sticky *affinity
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (f *listener) in(r role) set { return roleSets[index(f.key.nodePort())][r] }

func (f *listener) measure() {
	f.total, f.active, f.kept = int32(f.main.slots.len()), int32(f.main.active), 0
	if f.local != nil {
		f.kept = int32(f.local.active)
	}
}

// decide sets the verdicts. local is the external policy Local; elsewhere means that Cluster has endpoints.
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

type group struct {
	in   set
	base int
	pool *pool
	n    int
}

const numGroups = 2

// groups is indexed by list; a group may be empty.
func (f *listener) groups() (out [numGroups]group) {
	if f == nil {
		return out
	}
	in := slotSets[index(f.key.nodePort())]
	out[0] = group{in: in, pool: f.main, n: int(f.total)}
	out[1] = group{in: in, base: localSlots, pool: f.local, n: int(f.kept)}
	return out
}

func (f *listener) elements() (n int) {
	for _, g := range f.groups() {
		n += g.n
	}
	return n
}
