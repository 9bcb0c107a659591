package runtime

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type forward struct {
	protocol string
	// host is the node's address, or invalid for all addresses.
	host     netip.Addr
	hostPort int32
	pod      netip.Addr
	podPort  int32
}

func (s *sandbox) forwards() []forward {
	var all []forward
	for _, m := range s.config.GetPortMappings() {
		if m.GetHostPort() <= 0 || s.onHost() {
			continue
		}
		host, _ := netip.ParseAddr(m.GetHostIp())
		if host.IsValid() && host.IsUnspecified() {
			host = netip.Addr{}
		}
		for _, addr := range s.addresses {
			if host.IsValid() && host.Is4() != addr.Is4() {
				continue
			}
			protocol := strings.ToLower(m.GetProtocol().String())
			if m.GetProtocol() != cri.Protocol_TCP && m.GetProtocol() != cri.Protocol_UDP {
				continue
			}
			all = append(all, forward{protocol, host, m.GetHostPort(), addr, m.GetContainerPort()})
		}
	}
	return all
}

const hostPorts = "e2e-hostport"

// The table has an owner: see portTable. Its priority precedes a proxy's; nft has no name for that
// priority in the hook output. Packets from a pod to its own port, and from the loopback, get the
// node's address as source.
func rules(all []forward) string {
	var to, from strings.Builder
	for _, f := range all {
		family := "ip"
		if f.pod.Is6() {
			family = "ip6"
		}
		match := "fib daddr type local "
		if f.host.IsValid() {
			match = fmt.Sprintf("%s daddr %s ", family, f.host)
		}
		fmt.Fprintf(&to, "    meta nfproto %s %s%s dport %d dnat %s to %s\n",
			map[string]string{"ip": "ipv4", "ip6": "ipv6"}[family], match, f.protocol, f.hostPort, family, netip.AddrPortFrom(f.pod, uint16(f.podPort)))
		sources := []string{f.pod.String()}
		if f.pod.Is4() {
			sources = append(sources, "127.0.0.0/8")
		}
		for _, source := range sources {
			fmt.Fprintf(&from, "    %s saddr %s %s daddr %s %s dport %d masquerade\n", family, source, family, f.pod, f.protocol, f.podPort)
		}
	}
	return fmt.Sprintf(`table inet %[1]s { flags owner; }
delete table inet %[1]s
table inet %[1]s {
  flags owner
  chain forward {
%[2]s  }
  chain prerouting { type nat hook prerouting priority -110; jump forward; }
  chain output { type nat hook output priority -110; jump forward; }
  chain postrouting {
    type nat hook postrouting priority 90;
%[3]s  }
}
`, hostPorts, to.String(), from.String())
}

func (r *Runtime) syncPorts() error {
	r.ports.mu.Lock()
	defer r.ports.mu.Unlock()
	var all []forward
	r.mu.Lock()
	for _, s := range r.sandboxes {
		if !s.stopped {
			all = append(all, s.forwards()...)
		}
	}
	r.mu.Unlock()
	// Ports of a single address come before ports of all addresses.
	slices.SortStableFunc(all, func(a, b forward) int {
		switch {
		case a.host.IsValid() == b.host.IsValid():
			return 0
		case a.host.IsValid():
			return -1
		default:
			return 1
		}
	})
	if err := setSysctls(map[string]string{"net.ipv4.conf.all.route_localnet": "1"}); err != nil {
		return err
	}
	if err := r.ports.write(r.starter, r.cfg.Dir, rules(all)); err != nil {
		return fmt.Errorf("write host ports: %w", err)
	}
	return nil
}
