package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/cmd/weft/explain"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// stop is a rule of another program that stops packets of Services.
type stop struct {
	step    explain.Step
	verdict string
	example trip
	packets int
	// reply: the reply to example is stopped. inside: a packet is from the node or a pod.
	reply, inside bool
}

// checkForeign follows a sample of packets. Undecided packets are not findings.
func checkForeign(ctx context.Context, n *node, r *findings) error {
	state, err := n.services()
	if err != nil {
		return err
	}
	trips := sampleTrips(state)
	if len(trips) == 0 {
		return nil
	}
	follower, err := explain.OpenFollower()
	if err != nil {
		return err
	}
	defer follower.Close()
	var stops []*stop
	followed := 0
	for _, t := range trips {
		// With less time the sample is smaller.
		if ctx.Err() != nil {
			break
		}
		answer, err := follower.Follow(ctx, explain.Question{From: t.from, To: t.to.String(), Protocol: t.protocol.String(), Port: clientPort})
		if err != nil {
			continue // such as a packet from outside on a node without a default route
		}
		followed++
		stops = addStops(stops, t, answer)
	}
	for _, s := range stops {
		s.report(r, followed)
	}
	return nil
}

// addStops counts a packet once per stopping rule.
func addStops(stops []*stop, t trip, answer *explain.Answer) []*stop {
	counted := make(map[*stop]bool)
	for i := range answer.Ways {
		verdict, step, reply := answer.Ways[i].Stopped()
		if step == nil || !step.Foreign {
			continue
		}
		// A NodePort need not be open on every address of the node.
		if t.from == fromOutside && answer.Ways[i].To == t.to && step.Hook != "prerouting" {
			continue
		}
		n := slices.IndexFunc(stops, func(s *stop) bool {
			return s.step.Table == step.Table && s.step.Chain == step.Chain && s.step.Handle == step.Handle
		})
		if n < 0 {
			n = len(stops)
			stops = append(stops, &stop{step: *step, verdict: verdict, example: t, reply: reply})
		}
		s := stops[n]
		if !counted[s] {
			counted[s] = true
			s.packets++
		}
		s.inside = s.inside || t.from != fromOutside
	}
	return stops
}

// followed is the number of all packets.
func (s *stop) report(r *findings, followed int) {
	packet, severity := "packets", Error
	meaning := "Connections to these Services fail, because an accept in weft's tables does not help against a drop in another table"
	if s.reply {
		packet = "replies"
	}
	if !s.inside {
		severity = Warning
		meaning = "Clients outside of the cluster cannot connect to these Services through this node, which may be intended"
	}
	r.add(severity, fmt.Sprintf("%s, stops %s of Services (%s): %s; %d of %d packets that were followed", s.step.Place(), packet, s.verdict, s.example, s.packets, followed),
		meaning,
		fmt.Sprintf("`nft -a list chain %s %s` shows it: have the program that made it accept the pods' addresses as source and as destination, and established connections; `weft explain --from %s --to %s --protocol %s` has the whole way",
			s.step.Table, s.step.Chain, s.example.from, s.example.to, s.example.protocol))
}

const (
	fromNode    = "node"
	fromOutside = "outside"
)

// trip is the first packet of a connection to a Service.
type trip struct {
	service  string
	from     string
	to       netip.AddrPort
	protocol model.Protocol
}

const clientPort = 40000

func (t trip) String() string {
	return fmt.Sprintf("%s from %s to %s (Service %s)", t.protocol, t.from, t.to, t.service)
}
