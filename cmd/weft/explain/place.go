package explain

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
)

type place struct {
	// such as "pod shop/web"; empty for an address
	name string
	// outside is beyond the default route
	node, outside bool
	// empty for the node and outside
	addrs []netip.Addr
	// Both are 0 if unset. protocol is the Service port's.
	port     uint16
	protocol uint8
}

const (
	wordNode    = "node"
	wordOutside = "outside"
)

func (a *asker) parseFrom(ctx context.Context, text string) (place, error) {
	switch text {
	case wordNode:
		return place{node: true, name: "this node"}, nil
	case wordOutside:
		return place{outside: true, name: "outside"}, nil
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		return place{addrs: []netip.Addr{addr.Unmap()}}, nil
	}
	p, err := a.pod(ctx, strings.TrimPrefix(text, "pod/"))
	if err != nil {
		return place{}, fmt.Errorf("--from %s: %w", text, err)
	}
	return p, nil
}

// parseTo uses protocol, or 0, to choose between ports of a Service with the same number.
func (a *asker) parseTo(ctx context.Context, text string, protocol uint8) (place, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return place{addrs: []netip.Addr{addr.Unmap()}}, nil
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return place{addrs: []netip.Addr{ap.Addr().Unmap()}, port: ap.Port()}, nil
	}
	name, port, _ := strings.Cut(text, ":")
	if pod, ok := strings.CutPrefix(name, "pod/"); ok {
		p, err := a.pod(ctx, pod)
		if err == nil {
			p.port, err = parsePort(port)
		}
		if err != nil {
			return place{}, fmt.Errorf("--to %s: %w", text, err)
		}
		return p, nil
	}
	p, err := a.service(ctx, strings.TrimPrefix(name, "service/"), port, protocol)
	if err != nil {
		return place{}, fmt.Errorf("--to %s: %w", text, err)
	}
	return p, nil
}

// parseProtocol returns 0 for no flag.
func parseProtocol(flag string) (uint8, error) {
	n, ok := protocols[flag]
	if !ok && flag != "" {
		return 0, cli.Usagef("--protocol %s: want tcp, udp, sctp or icmp", flag)
	}
	return n, nil
}

func parsePort(text string) (uint16, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, cli.Usagef("%q is not a port: want 1 to 65535", text)
	}
	return uint16(n), nil
}

func (a *asker) pod(ctx context.Context, text string) (place, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		namespace, name = "default", text
	}
	pods, err := get.ReadPods(ctx, &a.conn)
	if err != nil {
		return place{}, fmt.Errorf("find pod %s/%s: %w; or give its address", namespace, name, err)
	}
	p := place{name: "pod " + namespace + "/" + name}
	for _, v := range pods {
		if v.Namespace != namespace || v.Name != name {
			continue
		}
		for _, text := range v.Addresses {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return place{}, fmt.Errorf("%s: %w", p.name, err)
			}
			p.addrs = append(p.addrs, addr)
		}
	}
	if len(p.addrs) == 0 {
		return place{}, fmt.Errorf("no pod %s/%s with an address of its own is on this node: ask on its node (`kubectl get pod -o wide`), or give its address", namespace, name)
	}
	return p, nil
}

// port is a name or number; empty for the only port. protocol is 0 for any.
func (a *asker) service(ctx context.Context, text, port string, protocol uint8) (place, error) {
	key, err := get.ParseServiceName(text)
	if err != nil {
		return place{}, err
	}
	s, err := a.readService(ctx, key)
	if err != nil {
		return place{}, err
	}
	p, err := choosePort(s, port, protocol)
	if err != nil {
		return place{}, err
	}
	addrs := slices.DeleteFunc(slices.Clone(p.ClusterIPs[:]), func(a netip.Addr) bool { return !a.IsValid() })
	out := place{name: "Service " + key.String(), port: p.Number, protocol: uint8(p.Protocol), addrs: addrs}
	if len(out.addrs) == 0 {
		return place{}, fmt.Errorf("port %d of Service %s has no ClusterIP of its own", p.Number, key)
	}
	return out, nil
}

func choosePort(s *model.Service, text string, protocol uint8) (*model.Port, error) {
	var names []string
	number, err := strconv.ParseUint(text, 10, 16)
	for i := range s.Ports {
		p := &s.Ports[i]
		named := text == "" && len(s.Ports) == 1 || text != "" && p.Name == text || err == nil && uint64(p.Number) == number
		if named && (protocol == 0 || uint8(p.Protocol) == protocol) {
			return p, nil
		}
		name := fmt.Sprintf("%d/%s", p.Number, p.Protocol)
		if p.Name != "" {
			name = p.Name + " (" + name + ")"
		}
		names = append(names, name)
	}
	if protocol != 0 {
		return nil, cli.Usagef("the Service has no port %q of %s; it has %s", text, protocolName(protocol), strings.Join(names, ", "))
	}
	if text == "" {
		return nil, cli.Usagef("the Service has several ports: add one of :%s", strings.Join(names, ", :"))
	}
	return nil, cli.Usagef("the Service has no port %q; it has %s", text, strings.Join(names, ", "))
}

// pair returns addresses of the same family, preferably IPv6 if six is true.
func pair(from, to place, six bool) (src, dst netip.Addr, err error) {
	if len(to.addrs) == 0 {
		return src, dst, cli.Usagef("--to: want an address, a pod or a Service")
	}
	order := slices.Clone(to.addrs)
	slices.SortStableFunc(order, func(a, b netip.Addr) int {
		if six {
			a, b = b, a
		}
		return cmp.Compare(a.BitLen(), b.BitLen())
	})
	if from.node || from.outside {
		return src, order[0], nil
	}
	for _, d := range order {
		for _, s := range from.addrs {
			if s.Is4() == d.Is4() {
				return s, d, nil
			}
		}
	}
	return src, dst, fmt.Errorf("the source has addresses of another IP family (%v) than the destination (%v)", from.addrs, to.addrs)
}
