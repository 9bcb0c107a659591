package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

type probe struct {
	// from is an actor, or "web-1" and so on for a pod that is an endpoint.
	from string
	// proto is tcp, udp, sctp or icmp.
	proto string
	// to is WHERE:PORT. WHERE is cluster, node, gateway (another address of the node), loopback,
	// node-2, external, external-2, lb, lb-2, unused (an unassigned address), or an address; it belongs
	// to the check's first Service, or to another by NAME/WHERE. PORT is the Service's port, or =N for
	// exactly N.
	to string
	// want is "POD POD... as self|node|ADDRESS", "refused", "dropped", "not sent" for a UDP packet that
	// the node stops at its source, or "unreachable" for a packet that left the node and found no host.
	// whatever means that only the sides must agree.
	want string
	// family is 4 or 6; 0 means both.
	family int
	// sticky means that all answers come from one of the pods in want; then to may be several, asked in
	// turn.
	sticky bool
	// flow names a conversation that stays open over the steps of its check; only the first from and to
	// count.
	flow string
}

func (p probe) String() string {
	s := fmt.Sprintf("%s %s -> %s", p.proto, p.from, p.to)
	if p.family != 0 {
		s += fmt.Sprintf(" IPv%d", p.family)
	}
	if p.flow != "" {
		s += " flow " + p.flow
	}
	return s
}

type reply struct {
	pod    string
	client netip.Addr
}

// whatever only requires the same result on both sides.
const whatever = "?"

// Bounds of an answer, which takes microseconds. A refusal of TCP takes a second: the client's kernel
// ignores it during connect, until its second packet.
const (
	answerTime  = 1300 * time.Millisecond
	refusalTime = 2500 * time.Millisecond
)

func (r *run) observe(ctx context.Context, s *side, p probe) string {
	var targets []netip.AddrPort
	for _, to := range strings.Fields(p.to) {
		addr, err := r.target(s, p, to)
		if err != nil {
			return err.Error()
		}
		targets = append(targets, addr)
	}
	from := s.actors[p.from]
	if p.flow != "" {
		return r.observeFlow(ctx, s, from, p, targets[0])
	}
	wanted := pods(p.want)
	// Enough to see a pod too many, and all wanted pods despite chance.
	least := 16 + 16*len(wanted)
	most := 3 * least
	switch {
	case p.want == whatever:
		least, most = 64, 64
	case len(wanted) == 0:
		least, most = 1, 1
	}
	timeout := answerTime
	if (p.want == "refused" || p.want == "unreachable" || p.want == whatever) && p.proto == "tcp" {
		timeout = refusalTime
	}
	seen := map[string]string{}
	for n := range most {
		if n >= least && (p.sticky || len(seen) >= len(wanted)) {
			break
		}
		if len(seen) > 1 && p.sticky || len(seen) > len(wanted) && len(wanted) > 0 {
			break // already wrong
		}
		a, err := from.ask(ctx, p.proto, targets[n%len(targets)], timeout)
		if err != nil {
			return outcome(err)
		}
		if source := s.sourceName(from, a.client); seen[a.pod] == "" || seen[a.pod] == source {
			seen[a.pod] = source
		} else {
			seen[a.pod] += "+" + source
		}
	}
	return sentence(seen, p.sticky, wanted)
}

// observeFlow asks once in an open conversation.
func (r *run) observeFlow(ctx context.Context, s *side, from *actor, p probe, to netip.AddrPort) string {
	key := fmt.Sprintf("%s %s %d", s.name, p.flow, p.family)
	r.mu.Lock()
	c := r.flows[key]
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if c == nil {
		var err error
		if c, err = from.Open(ctx, p.proto, to, 0); err != nil {
			return outcome(err)
		}
		r.mu.Lock()
		r.flows[key] = c
		r.mu.Unlock()
	}
	a, err := c.Ask(ctx, fmt.Sprintf("q%d", questions.Add(1)))
	if err != nil {
		return outcome(err)
	}
	return a.Pod + " as " + s.sourceName(from, a.Client.Addr())
}

// questions makes questions unique; crafted numbers source ports.
var questions, crafted atomic.Uint32

func (a *actor) ask(ctx context.Context, proto string, to netip.AddrPort, timeout time.Duration) (reply, error) {
	switch proto {
	case "icmp":
		return reply{pod: "echo", client: netip.Addr{}}, a.ping(to.Addr(), timeout)
	case "sctp":
		return a.askSCTP(to, uint16(20000+crafted.Add(1)%40000), timeout)
	default:
		answer, err := a.Ask(ctx, proto, to, timeout)
		return reply{answer.Pod, answer.Client.Addr()}, err
	}
}

// outcome is an error in the words of want.
func outcome(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.EPERM):
		return "not sent"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "dropped"
	default:
		return err.Error()
	}
}

// sentence has the answering pods, and the client addresses that they saw.
func sentence(seen map[string]string, sticky bool, wanted []string) string {
	if sticky && len(seen) == 1 {
		for pod, source := range seen {
			if slices.Contains(wanted, pod) {
				return strings.Join(wanted, " ") + " as " + source
			}
		}
	}
	names := slices.Sorted(maps.Keys(seen))
	sources := map[string]bool{}
	for _, s := range seen {
		sources[s] = true
	}
	text := strings.Join(names, " ") + " as " + strings.Join(slices.Sorted(maps.Keys(sources)), "+")
	if sticky {
		text = "not one alone: " + text
		if len(seen) == 1 && wanted == nil {
			return "one as " + strings.Join(slices.Sorted(maps.Keys(sources)), "+")
		}
	}
	return text
}

func pods(want string) []string {
	names, _, ok := strings.Cut(want, " as ")
	if !ok {
		return nil
	}
	return strings.Fields(names)
}

// sourceName is the client as seen by a server: self, node (any of its addresses), or an address.
func (s *side) sourceName(from *actor, client netip.Addr) string {
	client = client.Unmap()
	switch {
	case !client.IsValid():
		return "echo"
	case from.Name() != node && slices.Contains(from.addresses.All(), client):
		return "self"
	}
	n := s.lab.Nodes[0]
	own := append(n.Addresses.All(), n.PodCIDRs[0].Addr().Next(), n.PodCIDRs[1].Addr().Next())
	if slices.Contains(own, client) {
		return "node"
	}
	return client.String()
}

func (r *run) target(s *side, p probe, to string) (netip.AddrPort, error) {
	where, port, ok := cutLast(to, ":")
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("probe %q: want WHERE:PORT", to)
	}
	svc := r.check.services[0].name
	if name, rest, ok := strings.Cut(where, "/"); ok {
		svc, where = name, rest
	}
	v6 := p.family == 6
	addr, err := r.address(s, svc, where, v6)
	if err != nil {
		return netip.AddrPort{}, err
	}
	number, err := r.port(svc, where, port, p.proto)
	return netip.AddrPortFrom(addr, number), err
}

func (r *run) address(s *side, svc, where string, v6 bool) (netip.Addr, error) {
	n := s.lab.Nodes[0]
	pick := func(a lab.Addresses) netip.Addr {
		if v6 {
			return a.V6
		}
		return a.V4
	}
	switch where {
	case "cluster":
		o := r.object(svc)
		if o == nil {
			return netip.Addr{}, fmt.Errorf("no service %s", svc)
		}
		for _, ip := range o.Spec.ClusterIPs {
			if a, err := netip.ParseAddr(ip); err == nil && a.Is6() == v6 {
				return a, nil
			}
		}
		return netip.Addr{}, fmt.Errorf("service %s has no ClusterIP of that family", svc)
	case "node":
		return pick(n.Addresses), nil
	case "node-2":
		return pick(s.lab.Nodes[1].Addresses), nil
	case "gateway":
		return pick(lab.Addresses{V4: n.PodCIDRs[0].Addr().Next(), V6: n.PodCIDRs[1].Addr().Next()}), nil
	case "loopback":
		return pick(lab.Addresses{V4: netip.MustParseAddr("127.0.0.1"), V6: netip.IPv6Loopback()}), nil
	case "unused":
		// The API server allocates these first addresses only after all others (KEP-3070).
		return pick(lab.Addresses{V4: netip.MustParseAddr("10.96.0.222"), V6: netip.MustParseAddr("fd00:10:96::de")}), nil
	}
	if kind, rest, _ := strings.Cut(where, "-"); kind == "external" || kind == "lb" {
		return r.vip(svc, kind, map[string]int{"": 0, "2": 1}[rest], v6), nil
	}
	return netip.ParseAddr(where)
}

// port is the number in a probe, or its node port.
func (r *run) port(svc, where, text, proto string) (uint16, error) {
	var number uint16
	if literal, ok := strings.CutPrefix(text, "="); ok {
		_, err := fmt.Sscan(literal, &number)
		return number, err
	}
	if _, err := fmt.Sscan(text, &number); err != nil {
		return 0, fmt.Errorf("port %q: %w", text, err)
	}
	if !slices.Contains([]string{"node", "gateway", "loopback", "node-2"}, where) {
		return number, nil
	}
	o := r.object(svc)
	if o == nil {
		return 0, fmt.Errorf("no service %s", svc)
	}
	for _, p := range o.Spec.Ports {
		if p.Port == int32(number) && strings.EqualFold(string(p.Protocol), proto) && p.NodePort != 0 {
			// A lost node port may still be asked for.
			r.remember(svc, text, proto, uint16(p.NodePort))
			return uint16(p.NodePort), nil
		}
	}
	if n := r.remembered(svc, text, proto); n != 0 {
		return n, nil
	}
	return 0, fmt.Errorf("service %s has no node port for %s/%s", svc, text, proto)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
