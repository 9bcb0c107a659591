package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/sysctl"
	"github.com/weft-proxy/weft/nft/eval"
)

// Question selects a packet.
type Question struct {
	// From is "node", "outside", an address, or a local pod as "namespace/name". To is an address,
	// address:port, "pod/namespace/name:port", or a Service as "namespace/name:port".
	From, To string
	// default: of the Service's port, or tcp
	Protocol string
	// default: of the route to the source
	In string
	// the source port
	Port uint16
	// prefers IPv6 if both ends have both families
	IPv6 bool
	// the packet's mark at the arrival
	Mark uint32
	// the user of a sender on this node; nil if unknown
	UID *uint32
	// the file of a ruleset, instead of the kernel's
	Ruleset string
}

type asker struct {
	conn  cli.Connection
	host  *host
	rules *eval.Ruleset
	// the rules are from a file, without owners
	saved bool
}

// Ask answers a question by the ruleset and the routes of this network namespace, with names from
// weft.
func Ask(ctx context.Context, conn cli.Connection, q Question) (*Answer, error) {
	rules, closeRules, err := readRules(q.Ruleset)
	if err != nil {
		return nil, err
	}
	defer closeRules()
	a := &asker{conn: conn, host: newHost(), rules: rules, saved: q.Ruleset != ""}
	f, answer, err := a.follow(ctx, q)
	if err != nil {
		return nil, err
	}
	if answer.Service, err = a.serviceOf(ctx, f, answer.Ways); err != nil {
		return nil, err
	}
	answer.Sentence, answer.By = sentence(answer), by(answer)
	if !a.saved {
		answer.Sentence += fullTable("/")
	}
	return answer, nil
}

// follow answers the question without the Service and the sentence.
func (a *asker) follow(ctx context.Context, q Question) (f flow, answer *Answer, err error) {
	f, p, err := a.packet(ctx, q)
	if err != nil {
		return f, nil, err
	}
	answer = &Answer{Packet: p}
	answer.Ways, answer.Incomplete, err = a.ways(f, p, q)
	return f, answer, err
}

func (a *asker) packet(ctx context.Context, q Question) (f flow, p Packet, err error) {
	if q.To == "" || q.From == "" {
		return f, p, cli.Usagef("--from and --to are needed")
	}
	protocol, err := parseProtocol(q.Protocol)
	if err != nil {
		return f, p, err
	}
	to, err := a.parseTo(ctx, q.To, protocol)
	if err != nil {
		return f, p, err
	}
	from, err := a.parseFrom(ctx, q.From)
	if err != nil {
		return f, p, err
	}
	f.protocol = cmp.Or(protocol, to.protocol, uint8(unix.IPPROTO_TCP))
	src, dst, err := pair(from, to, q.IPv6)
	if err != nil {
		return f, p, err
	}
	if dst.Is6() && f.protocol == unix.IPPROTO_ICMP {
		f.protocol = unix.IPPROTO_ICMPV6
	}
	var in eval.Interface
	switch {
	case from.node:
		src, err = a.host.sourceTo(dst)
	case from.outside:
		in, src, err = a.host.outside(dst.Is6())
	default:
		var local bool
		switch in, local, err = a.host.towards(src); {
		case local:
			in, from.name = eval.Interface{}, "this node"
		case errors.Is(err, unix.ENETUNREACH) && q.In != "":
			err = nil // packets come in, but replies are lost
		case errors.Is(err, unix.ENETUNREACH):
			err = fmt.Errorf("--from %s: this node has no route to %s: replies to it are lost; add the route, or name the interface through which its packets come in with --interface", q.From, src)
		}
	}
	if err == nil && q.In != "" {
		in, err = a.host.named(q.In)
	}
	if err != nil {
		return f, p, err
	}
	sport, dport := q.Port, to.port
	switch {
	case !hasPorts(f.protocol):
		sport, dport = 0, 0
	case dport == 0:
		return f, p, cli.Usagef("--to %s: a port is needed for %s: add :PORT", q.To, protocolName(f.protocol))
	}
	f.source, f.destination = netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport)
	return f, Packet{Protocol: protocolName(f.protocol), From: f.source, To: f.destination, FromName: from.name, ToName: to.name, In: in.Name}, nil
}

func (a *asker) ways(f flow, p Packet, q Question) (ways []Way, incomplete bool, err error) {
	packet := eval.Packet{Data: f.packet(false), Mark: q.Mark, Conn: &eval.Conn{State: eval.StateNew}, Owner: eval.Owner{UID: q.UID}}
	for _, i := range a.host.links {
		if i.Name == p.In {
			packet.In = i
		}
	}
	outcomes, complete, err := eval.Evaluate(a.rules, packet, a.host.inputs())
	if err != nil {
		return nil, false, err
	}
	for i := range outcomes {
		w := a.way(&outcomes[i])
		if w.Verdict == wordAccept && w.To != p.To && w.To.Addr() == p.From.Addr() {
			if w.Reason = w.ownSource(); w.Reason == "" {
				w.Reason = a.host.noHairpin(packet.In, outcomes[i].Packet.Out, p.From.Addr())
			}
			if w.Reason != "" {
				w.Verdict, w.Out = wordDrop, ""
			}
		}
		if w.Verdict == wordAccept && w.Out != "" {
			w.Via = a.host.router(p.From.Addr(), w.To.Addr(), packet.In, w.Mark)
			if w.Reply, err = a.reply(f, &outcomes[i]); err != nil {
				return nil, false, err
			}
		}
		ways = append(ways, w)
	}
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(b.Probability, a.Probability) })
	return ways, !complete, nil
}

func (a *asker) way(o *eval.Outcome) Way {
	now := flowOf(o.Packet.Data)
	w := Way{Reason: o.Reason, From: now.source, To: now.destination, Mark: o.Packet.Mark}
	w.Verdict, w.Steps = a.steps(o)
	if o.Verdict == eval.Accept {
		w.Out = o.Packet.Out.Name
	}
	if p, ok := o.Probability(); ok {
		w.Probability = p
		return w
	}
	w.Choices = cli.Map(o.Choices, func(c eval.Choice) string { return c.What + ": " + c.Result })
	return w
}

// reply returns the way of the reply to f's first packet, which has left this node.
func (a *asker) reply(f flow, o *eval.Outcome) (*Way, error) {
	conn := *o.Packet.Conn
	conn.State, conn.Reply = eval.StateEstablished, true
	back := flow{source: conn.Replies.Source, destination: conn.Replies.Destination, protocol: f.protocol}
	packet := eval.Packet{Data: back.packet(true), In: o.Packet.Out, Conn: &conn}
	outcomes, _, err := eval.Evaluate(a.rules, packet, a.host.inputs())
	if err != nil {
		return nil, err
	}
	// An outcome without an accept comes first.
	worst := &outcomes[0]
	for i := range outcomes {
		if outcomes[i].Verdict != eval.Accept {
			worst = &outcomes[i]
			break
		}
	}
	w := a.way(worst)
	if w.Out != "" {
		w.Via = a.host.router(back.source.Addr(), f.source.Addr(), packet.In, w.Mark)
	}
	return &w, nil
}

// Follower reads the tables once, and does not ask weft, so its answers have neither Services nor
// owners. It is not safe for concurrent use.
type Follower struct {
	asker asker
	close func()
}

// OpenFollower reads the tables of the kernel.
func OpenFollower() (*Follower, error) {
	rules, closeRules, err := readRules("")
	if err != nil {
		return nil, err
	}
	return &Follower{asker: asker{host: newHost(), rules: rules}, close: closeRules}, nil
}

// Close ends the access to the kernel.
func (f *Follower) Close() { f.close() }

// Follow answers a question between "node", "outside" and addresses.
func (f *Follower) Follow(ctx context.Context, q Question) (*Answer, error) {
	_, answer, err := f.asker.follow(ctx, q)
	return answer, err
}

// Stopped returns the verdict and the last step of a way, or of the reply if the way is accepted.
// step may be nil.
func (w *Way) Stopped() (verdict string, step *Step, reply bool) {
	if w.Verdict == wordAccept && w.Reply != nil {
		w, reply = w.Reply, true
	}
	if w.Verdict != wordDrop && w.Verdict != wordReject || w.Reason != "" || len(w.Steps) == 0 {
		return w.Verdict, nil, reply
	}
	return w.Verdict, &w.Steps[len(w.Steps)-1], reply
}

// fullTable returns text if root's connection tracking table is full: the kernel then drops new
// connections regardless of rules.
func fullTable(root string) string {
	count, most, err := sysctl.Tracked(root)
	if err != nil || most == 0 || count < most {
		return ""
	}
	return fmt.Sprintf("; but the connection tracking table is full (%d of %d entries), and the kernel drops new connections: see weft doctor", count, most)
}
