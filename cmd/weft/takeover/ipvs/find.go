package ipvs

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Device has the addresses of Services.
const Device = "kube-ipvs0"

var protocols = map[string]uint8{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP, "SCTP": unix.IPPROTO_SCTP}

// end is of a connection to a virtual server. A set of ports has no addresses, a set of addresses no ports.
type end struct {
	protocol uint8
	addr     netip.Addr
	port     uint16
}

func endOf(protocol uint8, a netip.AddrPort) end { return end{protocol, a.Addr(), a.Port()} }

// Server is a virtual server.
type Server struct {
	end
	// such as "TCP 10.96.0.1:443"
	Name      string
	Scheduler string
	// foreign means that it goes by a firewall mark or does not translate.
	foreign bool
}

// Is4 reports whether it is of IPv4.
func (s Server) Is4() bool { return s.addr.Is4() }

// Left lists the remains of kube-proxy.
type Left struct {
	Servers   []Server
	Addresses []netip.Addr
	Sets      []string
	// Others describes virtual servers and addresses of other programs.
	Others []string

	host host
	// device means that kube-ipvs0 exists, shared that it has addresses of other programs.
	device, shared bool
}

// Find reads the network namespace. proc is the path of /proc.
func Find(proc string) (*Left, error) {
	servers, err := readServers(proc)
	if err != nil {
		return nil, err
	}
	addrs, device, err := deviceAddresses()
	if err != nil {
		return nil, err
	}
	sets, err := listSets()
	if err != nil {
		return nil, err
	}
	l := decide(servers, addrs, sets)
	l.host = kernel{}
	l.device = device && (!l.shared || len(l.Addresses) > 0)
	return l, nil
}

func decide(servers []Server, addrs []netip.Addr, sets map[string][]end) *Left {
	l := &Left{Sets: slices.Sorted(maps.Keys(sets))}
	owned, named := make(map[end]bool), make(map[netip.Addr]bool)
	for _, members := range sets {
		for _, m := range members {
			owned[m], named[m.addr] = true, true
		}
	}
	bound := make(map[netip.Addr]bool)
	for _, a := range addrs {
		bound[a] = true
	}
	for _, s := range servers {
		if !s.foreign && (bound[s.addr] || owned[s.end] || owned[end{protocol: s.protocol, port: s.port}]) {
			l.Servers, named[s.addr] = append(l.Servers, s), true
		} else {
			l.Others = append(l.Others, "virtual server "+s.Name)
		}
	}
	for _, a := range addrs {
		if len(sets) == 0 || named[a] {
			l.Addresses = append(l.Addresses, a)
		} else {
			l.Others, l.shared = append(l.Others, "address "+a.String()+" of device "+Device), true
		}
	}
	return l
}

// What describes the removals.
func (l *Left) What() (out []string) {
	if n := len(l.Servers); n > 0 {
		out = append(out, fmt.Sprintf("%d virtual servers of IPVS", n))
	}
	if l.device {
		out = append(out, fmt.Sprintf("device %s with %d addresses", Device, len(l.Addresses)))
	}
	if n := len(l.Sets); n > 0 {
		out = append(out, fmt.Sprintf("%d sets of ipset", n))
	}
	return out
}

// readServers returns no virtual servers for a kernel without IPVS.
func readServers(proc string) (servers []Server, err error) {
	err = lines(filepath.Join(proc, "self/net/ip_vs"), func(words []string) {
		switch {
		case len(words) < 3:
		case words[0] == "FWM":
			servers = append(servers, Server{Name: "of firewall mark " + words[1], Scheduler: words[2], foreign: true})
		case words[0] == "->" && len(servers) > 0:
			last := &servers[len(servers)-1]
			last.foreign = last.foreign || words[2] == "Route" || words[2] == "Tunnel"
		case protocols[words[0]] != 0:
			i := max(strings.LastIndexByte(words[1], ':'), 0)
			if addr, ok := parseEnd(words[1][:i], strings.TrimPrefix(words[1][i:], ":")); ok {
				servers = append(servers, Server{end: endOf(protocols[words[0]], addr), Name: words[0] + " " + addr.String(), Scheduler: words[2]})
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list virtual servers: %w", err)
	}
	return servers, nil
}

// lines does nothing for a missing file.
func lines(name string, f func(words []string)) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	s := bufio.NewScanner(file)
	for s.Scan() {
		f(strings.Fields(s.Text()))
	}
	return s.Err()
}

// parseEnd parses 0A600001 or [fd00:...], and a port in hexadecimal.
func parseEnd(addr, port string) (netip.AddrPort, bool) {
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	a, err := netip.ParseAddr(strings.Trim(addr, "[]"))
	if b, herr := hex.DecodeString(addr); herr == nil && len(b) == 4 {
		a, err = netip.AddrFrom4([4]byte(b)), nil
	}
	return netip.AddrPortFrom(a, uint16(p)), err == nil
}

func deviceAddresses() (addrs []netip.Addr, exists bool, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, false, fmt.Errorf("list devices: %w", err)
	}
	i := slices.IndexFunc(all, func(d net.Interface) bool { return d.Name == Device })
	if i < 0 {
		return nil, false, nil
	}
	list, err := all[i].Addrs()
	if err != nil {
		return nil, false, fmt.Errorf("list addresses of %s: %w", Device, err)
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
			addrs = append(addrs, p.Addr())
		}
	}
	return addrs, true, nil
}
