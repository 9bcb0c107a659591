package explain

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// tracePriority is after defragmentation (-400), before usual rulesets.
const tracePriority = -399

type selection struct {
	from, to, protocol, in string
	rate                   int
}

func (s *selection) describe() string {
	var b strings.Builder
	for _, f := range [][2]string{{"from", s.from}, {"to", s.to}, {"protocol", s.protocol}, {"interface", s.in}} {
		if f[1] != "" {
			fmt.Fprintf(&b, " --%s %s", f[0], f[1])
		}
	}
	return strings.TrimSpace(b.String())
}

func (s *selection) rules(ctx context.Context, a *asker, table string) (string, error) {
	from, to := place{}, place{}
	protocol, err := parseProtocol(s.protocol)
	if err != nil {
		return "", err
	}
	if s.from != "" {
		if from, err = a.parseFrom(ctx, s.from); err != nil {
			return "", err
		}
	}
	if s.to != "" {
		if to, err = a.parseTo(ctx, s.to, protocol); err != nil {
			return "", err
		}
	}
	transport, err := s.transport(to, cmp.Or(protocol, to.protocol))
	if err != nil {
		return "", err
	}
	var matches []string
	for _, family := range []string{"ip", "ip6"} {
		source, ok := addresses(family, "saddr", from.addrs)
		destination, also := addresses(family, "daddr", to.addrs)
		if !ok || !also {
			continue
		}
		matches = append(matches, strings.TrimSpace("meta nfproto "+map[string]string{"ip": "ipv4", "ip6": "ipv6"}[family]+source+destination+transport[family]))
	}
	if len(matches) == 0 {
		return "", cli.Usagef("--from %s and --to %s have no IP family in common", s.from, s.to)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", table)
	for _, hook := range []string{"prerouting", "output"} {
		if hook == "output" && (from.outside || s.in != "") || hook == "prerouting" && from.node {
			continue
		}
		in := ""
		if s.in != "" {
			in = fmt.Sprintf("iifname %q ", s.in)
		}
		fmt.Fprintf(&b, "  chain %s {\n    type filter hook %s priority %d; policy accept;\n", hook, hook, tracePriority)
		for _, m := range matches {
			fmt.Fprintf(&b, "    %s%s limit rate %d/second burst %d packets meta nftrace set 1\n", in, m, s.rate, s.rate)
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String(), nil
}

func (s *selection) transport(to place, protocol uint8) (map[string]string, error) {
	switch {
	case s.protocol != "" && to.port != 0 && !hasPorts(protocol):
		return nil, cli.Usagef("--protocol %s: it has no ports, and --to %s names one", s.protocol, s.to)
	case protocol == unix.IPPROTO_ICMP:
		return map[string]string{"ip": " meta l4proto icmp", "ip6": " meta l4proto ipv6-icmp"}, nil
	case protocol == 0 && to.port == 0:
		return nil, nil //nolint:nilnil // all
	}
	text := " meta l4proto { tcp, udp, sctp }"
	if protocol != 0 {
		text = " meta l4proto " + protocolName(protocol)
	}
	if to.port != 0 {
		text += fmt.Sprintf(" th dport %d", to.port)
	}
	return map[string]string{"ip": text, "ip6": text}, nil
}

// addresses returns "" and true without addresses, and false if all are of the other family.
func addresses(family, field string, addrs []netip.Addr) (string, bool) {
	var own []string
	for _, a := range addrs {
		if a.Is4() == (family == "ip") {
			own = append(own, a.String())
		}
	}
	switch {
	case len(addrs) == 0:
		return "", true
	case len(own) == 0:
		return "", false
	default:
		return fmt.Sprintf(" %s %s { %s }", family, field, strings.Join(own, ", ")), true
	}
}
