package links

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

const (
	// A pod can announce any number of addresses.
	maxAddresses = 64
	hasMAC       = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE | unix.NUD_PERMANENT
	// RTA_NH_ID.
	nextHop = 30
)

var errAddresses = errors.New("a port of a bridge has more than 64 addresses: the rest are ignored")

type iface struct {
	name                 string
	master               int32
	up, loopback, bridge bool
}

// The lowest rank wins.
type route struct {
	rank   uint64
	device int32
}

type station struct {
	device int32
	mac    [6]byte
}

type entry struct {
	routes []route // by rank
	// For each bridge with the address as a neighbour.
	stations []station
	// The first bridge port, or 0.
	port int32
}

type set = map[netip.Addr]struct{}

type table struct {
	warn    func(message string, err error)
	ifaces  map[int32]iface
	entries map[netip.Addr]entry
	users   map[station]set // addresses by entry.names: stations, and devices as stations without a MAC
	changed set             // since the last delivery
}

func newTable(warn func(string, error)) *table {
	return &table{warn: warn, ifaces: make(map[int32]iface), entries: make(map[netip.Addr]entry), users: make(map[station]set), changed: make(set)}
}

func (t *table) link(addr netip.Addr) model.Link {
	e := t.entries[addr]
	found := t.ifaces[e.port]
	for _, r := range e.routes {
		if i := t.ifaces[r.device]; i.name != "" && !i.loopback && !i.bridge {
			found = i
			break
		}
	}
	return model.Link{Name: found.name, Bridged: t.ifaces[found.master].bridge}
}

func (t *table) edit(addr netip.Addr, change func(*entry)) {
	e := t.entries[addr]
	for _, s := range e.names() {
		delete(t.users[s], addr)
		if len(t.users[s]) == 0 {
			delete(t.users, s)
		}
	}
	change(&e)
	delete(t.entries, addr)
	for _, s := range e.names() {
		if t.users[s] == nil {
			t.users[s] = make(set)
		}
		t.users[s][addr], t.entries[addr] = struct{}{}, e
	}
	t.changed[addr] = struct{}{}
}

func (e *entry) names() []station {
	out := slices.Clone(e.stations)
	for _, r := range e.routes {
		out = append(out, station{device: r.device})
	}
	if e.port != 0 {
		out = append(out, station{device: e.port})
	}
	return out
}

// apply ignores truncated messages and unknown kinds.
func (t *table) apply(kind, flags uint16, b []byte) {
	switch kind {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		t.setIface(b, kind == unix.RTM_NEWLINK)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		t.setRoute(b, kind == unix.RTM_NEWROUTE, flags&unix.NLM_F_REPLACE != 0)
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		t.setNeighbour(b, kind == unix.RTM_NEWNEIGH)
	}
}

// setIface ignores messages without a name, of bridges about their ports, and of wireless drivers.
func (t *table) setIface(b []byte, exists bool) {
	h, a := split(b, unix.SizeofIfInfomsg)
	if h == nil || h[0] != unix.AF_UNSPEC || a[unix.IFLA_IFNAME] == nil {
		return
	}
	index, was, now := device(h), t.ifaces[device(h)], iface{}
	delete(t.ifaces, index)
	if exists {
		flags := binary.NativeEndian.Uint32(h[8:])
		_, info := split(a[unix.IFLA_LINKINFO], 0)
		now = iface{unix.ByteSliceToString(a[unix.IFLA_IFNAME]), int32(a.number(unix.IFLA_MASTER)),
			flags&unix.IFF_UP != 0, flags&unix.IFF_LOOPBACK != 0, unix.ByteSliceToString(info[unix.IFLA_INFO_KIND]) == "bridge"}
		t.ifaces[index] = now
	}
	if now == was {
		return
	}
	users := maps.Clone(t.users[station{device: index}])
	for addr := range users {
		t.edit(addr, func(e *entry) {
			if !now.up {
				// The kernel removes them without an event for IPv4.
				e.routes = slices.DeleteFunc(e.routes, func(r route) bool { return r.device == index })
			}
			if e.port == index && now.master != was.master {
				e.port = 0
			}
		})
	}
	for addr := range users {
		t.find(addr)
	}
}

// Any new route may replace direct ones.
func (t *table) setRoute(b []byte, exists, replace bool) {
	h, a := split(b, unix.SizeofRtMsg)
	to, ok := netip.AddrFromSlice(a[unix.RTA_DST])
	table := a.number(unix.RTA_TABLE)
	// Family, lengths, type of service, table, protocol, scope, type, flags.
	if !ok || int(h[1]) != to.BitLen() || h[2] != 0 || h[3] != 0 || table == unix.RT_TABLE_LOCAL || binary.NativeEndian.Uint32(h[8:])&unix.RTM_F_CLONED != 0 {
		return
	}
	if table == unix.RT_TABLE_MAIN {
		table = 0
	}
	now := route{rank: uint64(table)<<32 | uint64(a.number(unix.RTA_PRIORITY)), device: int32(a.number(unix.RTA_OIF))}
	direct := h[7] == unix.RTN_UNICAST && now.device != 0 && a[unix.RTA_GATEWAY] == nil && a[unix.RTA_VIA] == nil && a[nextHop] == nil
	t.edit(to, func(e *entry) {
		e.routes = slices.DeleteFunc(e.routes, func(r route) bool { return direct && r == now || replace && r.rank == now.rank })
		if direct && exists {
			e.routes = append(e.routes, now)
			slices.SortStableFunc(e.routes, func(a, b route) int { return cmp.Compare(a.rank, b.rank) })
		}
	})
}

// Neither a bridge's neighbour nor a forwarding entry changes the port of an address.
func (t *table) setNeighbour(b []byte, exists bool) {
	h, a := split(b, unix.SizeofNdMsg)
	if h == nil {
		return
	}
	s := station{device: device(h)}
	resolved := copy(s.mac[:], a[unix.NDA_LLADDR]) == len(s.mac)
	if exists && resolved && forwards(h) {
		s.device = int32(a.number(unix.NDA_MASTER))
		for addr := range maps.Clone(t.users[s]) {
			t.bind(addr, s.device, device(h))
		}
	}
	addr, ok := netip.AddrFromSlice(a[unix.NDA_DST])
	if h[0] == unix.AF_BRIDGE || !ok || !t.ifaces[s.device].bridge || addr.Is6() && addr.IsLinkLocalUnicast() {
		return
	}
	t.edit(addr, func(e *entry) {
		e.stations = slices.DeleteFunc(e.stations, func(old station) bool { return old.device == s.device })
		if exists && resolved && state(h)&hasMAC != 0 {
			e.stations = append(e.stations, s)
		}
	})
	t.find(addr)
}

func (t *table) find(addr netip.Addr) {
	for _, s := range t.entries[addr].stations {
		if t.entries[addr].port != 0 {
			return
		}
		port, err := portOf(s)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			t.warn("interfaces of pods: the port of a MAC is not known", err)
		}
		t.bind(addr, s.device, port)
	}
}

func (t *table) bind(addr netip.Addr, bridge, port int32) {
	if t.entries[addr].port != 0 || port == 0 || t.ifaces[port].master != bridge {
		return
	}
	if len(t.users[station{device: port}]) >= maxAddresses {
		t.warn("interfaces of pods: addresses are ignored", errAddresses)
		return
	}
	t.edit(addr, func(e *entry) { e.port = port })
}

func (t *table) keepPorts(before *table) {
	for addr, e := range before.entries {
		t.bind(addr, before.ifaces[e.port].master, e.port)
	}
}
