package backends

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// partLen is the padded length of a protocol or port in a concatenation.
const partLen = 4

// Layout has the byte positions of a packed key and its data. Layouts are comparable.
type Layout struct {
	addr        int // length in the key, or 0
	proto, port int
	// end is the length of the destination, dataAddr of the address in the data, data of the data.
	end, dataAddr, data int
}

// Backend is a packed UDP destination with a backend.
type Backend struct {
	// Dest is the packed key up to the port, Data the packed address and port of the backend.
	Dest string
	Data string
}

// NewLayout returns the layout of a map with watchable flows. Of types it uses only the names: a
// dumped declaration has no more.
func NewLayout(d *nftset.Set) (Layout, bool) {
	var l Layout
	if !d.Map || d.Verdict || len(d.Data.Names) != 2 {
		return l, false
	}
	names := d.Key.Names
	if len(names) > 0 {
		l.addr = AddrLen(names[0])
	}
	if l.addr > 0 {
		names = names[1:]
	}
	if len(names) < 2 || names[0] != "inet_proto" || names[1] != "inet_service" {
		return l, false
	}
	l.proto, l.port, l.end = l.addr, l.addr+partLen, l.addr+2*partLen
	l.dataAddr, l.data = AddrLen(d.Data.Names[0]), int(d.Data.Len)
	return l, l.dataAddr > 0 && d.Data.Names[1] == "inet_service"
}

// AddrLen returns the length of an address type in bytes, or 0.
func AddrLen(name string) int {
	switch name {
	case "ipv4_addr":
		return 4
	case "ipv6_addr":
		return 16
	default:
		return 0
	}
}

// ByPort reports whether keys begin with a port without address, for any data.
func ByPort(d *nftset.Set) bool {
	return d.Map && len(d.Key.Names) >= 2 && d.Key.Names[0] == "inet_proto" && d.Key.Names[1] == "inet_service"
}

// UDPPort returns the UDP port of a key with ByPort.
func UDPPort(key string) (port uint16, ok bool) {
	if len(key) < 2*partLen || key[0] != unix.IPPROTO_UDP {
		return 0, false
	}
	return binary.BigEndian.Uint16([]byte(key[partLen:])), true
}

func (l *Layout) ByPort() bool { return l.addr == 0 }

// DestLen and BackendLen are in bytes.
func (l *Layout) DestLen() int    { return l.end }
func (l *Layout) BackendLen() int { return l.end + l.data }

func (l *Layout) Backend(e *nftset.Element) (Backend, bool) {
	if len(e.Key) < l.end || e.Key[l.proto] != unix.IPPROTO_UDP || len(e.Data) < l.dataAddr+2 || len(e.Data) != l.data {
		return Backend{}, false
	}
	return Backend{Dest: e.Key[:l.end], Data: e.Data}, true
}

// Pack packs a UDP flow, if it fits. Keys without an address need an unspecified one.
func (l *Layout) Pack(dest, to netip.AddrPort) (Backend, bool) {
	addr, data := dest.Addr().AsSlice(), to.Addr().AsSlice()
	if len(data) != l.dataAddr || l.addr > 0 && len(addr) != l.addr || l.addr == 0 && !dest.Addr().IsUnspecified() {
		return Backend{}, false
	}
	key, value := make([]byte, l.end), make([]byte, l.data)
	copy(key[:l.addr], addr)
	key[l.proto] = unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(key[l.port:], dest.Port())
	binary.BigEndian.PutUint16(value[copy(value, data):], to.Port())
	return Backend{Dest: string(key), Data: string(value)}, true
}

// Dest unpacks a destination. Without an address it is the unspecified one of the backends' family:
// see conntrack.Stale.
func (l *Layout) Dest(dest string) netip.AddrPort {
	addr, ok := netip.AddrFromSlice([]byte(dest[:l.addr]))
	if !ok {
		addr, _ = netip.AddrFromSlice(make([]byte, l.dataAddr))
	}
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16([]byte(dest[l.port:l.port+2])))
}

func (l *Layout) AddrPort(data string) netip.AddrPort {
	addr, _ := netip.AddrFromSlice([]byte(data[:l.dataAddr]))
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16([]byte(data[l.dataAddr:l.dataAddr+2])))
}

// Previous returns the key of the previous slot, where a slot number in host order follows the
// destination.
func (l *Layout) Previous(key string) (previous string, first, ok bool) {
	if len(key) != l.end+partLen {
		return "", false, false
	}
	slot := binary.NativeEndian.Uint32([]byte(key[l.end:]))
	return key[:l.end] + string(binary.NativeEndian.AppendUint32(nil, slot-1)), slot == 0, true
}
