package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/nft/eval"
)

func sentence(a *Answer) string {
	if len(a.Ways) == 0 {
		return "nothing is known of this packet"
	}
	accepted := 0
	for i := range a.Ways {
		if a.Ways[i].Verdict == wordAccept {
			accepted++
		}
	}
	switch w := &a.Ways[0]; {
	case accepted == len(a.Ways):
		return "The packet is delivered" + destination(a) + onLoopback(a) + unanswered(a)
	case accepted > 0:
		return fmt.Sprintf("It depends: %d of %d ways deliver the packet%s", accepted, len(a.Ways), unanswered(a))
	case w.Verdict == wordUndecided:
		return "It cannot be decided: " + w.Reason
	default:
		text := w.ending(a.Service)
		if more := unused(a.Service); more != "" && !strings.Contains(text, more) {
			text += ". " + strings.ToUpper(more[:1]) + more[1:]
		}
		return text
	}
}

func destination(a *Answer) string {
	if a.Service == nil || slices.ContainsFunc(a.Ways, func(w Way) bool { return w.To == a.Packet.To }) {
		return ""
	}
	targets := make(map[string]bool)
	for i := range a.Ways {
		targets[a.Ways[i].To.String()] = true
	}
	if len(targets) == 1 {
		return fmt.Sprintf(" to the endpoint %s of Service %s", a.Ways[0].To, a.Service.Name)
	}
	return fmt.Sprintf(" to one of %d endpoints of Service %s", len(targets), a.Service.Name)
}

func onLoopback(a *Answer) string {
	if a.Service == nil || a.Service.How != howLoopback {
		return ""
	}
	return " on this node, which no rule changes: if nodePortAddresses has loopback addresses, a listener of weft passes TCP on to an endpoint"
}

func unanswered(a *Answer) string {
	if r := a.lostReply(); r != nil {
		return ", but its reply is not. " + r.ending(nil)
	}
	return ""
}

func (a *Answer) lostReply() *Way {
	for i := range a.Ways {
		if r := a.Ways[i].Reply; r != nil && r.Verdict != wordAccept {
			return r
		}
	}
	return nil
}

var pasts = map[string]string{wordDrop: "Dropped", wordReject: "Rejected", wordUndecided: "Not followed further"}

func (w *Way) ending(s *Service) string {
	why, remedy := w.why(s)
	return pasts[w.Verdict] + prefixed(": ", why) + prefixed(". ", remedy)
}

func (w *Way) by() string {
	if w == nil || len(w.Steps) == 0 || w.Reason != "" || w.Verdict == wordAccept {
		return ""
	}
	return w.Steps[len(w.Steps)-1].Place()
}

// by names the rule that stops the first way if no way is accepted, or else a reply.
func by(a *Answer) string {
	if len(a.Ways) == 0 || slices.ContainsFunc(a.Ways, func(w Way) bool { return w.Verdict == wordAccept }) {
		return a.lostReply().by()
	}
	return a.Ways[0].by()
}

// Place names the rule of a step and the owner.
func (s *Step) Place() string {
	what := fmt.Sprintf("rule %q", s.Rule)
	switch {
	case s.Handle == 0:
		what = "the " + s.Rule
	case strings.HasPrefix(s.Rule, eval.HandleWord):
		what = s.Rule
	}
	if s.Comment != "" {
		what += fmt.Sprintf(" (%s)", s.Comment)
	}
	what += fmt.Sprintf(" of chain %s in table %s", s.Chain, s.Table)
	switch {
	case s.Owner != "":
		what += ", fragment " + s.Owner
	case s.Foreign:
		what += ", which is another program's"
	}
	return what
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// Print prints an answer as text.
func Print(w io.Writer, a *Answer) error {
	fmt.Fprintln(w, a.Sentence+".")
	if a.By != "" {
		fmt.Fprintf(w, "By %s.\n", a.By)
	}
	fmt.Fprintf(w, "\nPacket:  %s from %s to %s\n", a.Packet.Protocol, a.end(true), a.end(false))
	if s := a.Service; s != nil {
		policy := ""
		if s.Local {
			policy = ", traffic policy Local"
		}
		fmt.Fprintf(w, "Service: %s%s (%s%s)\n", s.Name, prefixed(", port ", s.Port), s.How, policy)
		printEndpoints(w, a)
	}
	// Ways with the same steps differ only in the endpoint.
	var printed []string
	for i := range a.Ways {
		way := &a.Ways[i]
		steps := way.outline()
		if slices.Contains(printed, steps) {
			continue
		}
		printed = append(printed, steps)
		printWay(w, a, way)
	}
	if a.Incomplete {
		fmt.Fprintf(w, "\nThere are more ways than the %d that were evaluated.\n", len(a.Ways))
	}
	if next := a.elsewhere(); next != "" {
		fmt.Fprintf(w, "\nThe endpoint is on another node. What happens there says, on that node: %s\n", next)
	}
	return nil
}

// elsewhere returns a command for the node of a remote endpoint, or an empty text.
func (a *Answer) elsewhere() string {
	if a.Service == nil {
		return ""
	}
	for i := range a.Ways {
		w := &a.Ways[i]
		if w.Verdict == wordAccept && slices.ContainsFunc(a.Service.Endpoints, func(e Endpoint) bool { return e.Address == w.To && !e.OnNode }) {
			return fmt.Sprintf("weft explain --from %s --to %s --protocol %s", w.From.Addr(), w.To, a.Packet.Protocol)
		}
	}
	return ""
}

func (a *Answer) end(source bool) string {
	name, addr, in := a.Packet.ToName, a.Packet.To.String(), ""
	if a.Packet.Protocol == "icmp" {
		addr = a.Packet.To.Addr().String()
	}
	if source {
		name, addr = a.Packet.FromName, a.Packet.From.Addr().String()
		in = prefixed(" through ", a.Packet.In)
	}
	if name == "" {
		return addr + in
	}
	return fmt.Sprintf("%s (%s)%s", name, addr, in)
}

func printEndpoints(w io.Writer, a *Answer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range a.Service.Endpoints {
		here, share := "another node", "-"
		if e.OnNode {
			here = "this node"
		}
		p := 0.0
		for i := range a.Ways {
			if a.Ways[i].To == e.Address {
				p += a.Ways[i].Probability
			}
		}
		if p > 0 {
			share = fmt.Sprintf("%.3g %%", 100*p)
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\n", get.EndpointText(e.Address), share, here, prefixed("not used: ", e.Excluded))
	}
	_ = tw.Flush()
}

func (w *Way) outline() string {
	var b strings.Builder
	fmt.Fprint(&b, w.Verdict, w.Reason, w.Out)
	for _, s := range w.Steps {
		fmt.Fprint(&b, s.Table, s.Chain, s.Handle, s.Verdict)
	}
	return b.String()
}

func printWay(w io.Writer, a *Answer, way *Way) {
	var changes []string
	if way.To != a.Packet.To {
		changes = append(changes, "to "+way.To.String())
	}
	if way.From != a.Packet.From {
		changes = append(changes, "from "+way.From.Addr().String())
	}
	if way.Verdict == wordAccept {
		changes = append(changes, way.leaving())
	}
	head := way.Verdict
	if len(way.Choices) > 0 {
		head += " if " + strings.Join(way.Choices, ", ")
	}
	fmt.Fprintf(w, "\n%s%s%s\n", head, prefixed(" ", strings.Join(changes, ", ")), prefixed(": ", way.Reason))
	printSteps(w, way.Steps)
	if r := way.Reply; r != nil {
		if r.Verdict == wordAccept {
			fmt.Fprintf(w, "  reply: %s, %s\n", r.Verdict, r.leaving())
		} else {
			fmt.Fprintf(w, "  reply: %s%s\n", r.Verdict, prefixed(": ", r.Reason))
			printSteps(w, r.Steps)
		}
	}
}

func (w *Way) leaving() string {
	switch {
	case w.Out == "":
		return "received by this node"
	case w.Via.IsValid():
		return fmt.Sprintf("leaves through %s to router %s", w.Out, w.Via)
	default:
		return "leaves through " + w.Out
	}
}

func printSteps(w io.Writer, steps []Step) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range steps {
		s := &steps[i]
		// A jump to a chain without a matching rule is left out.
		if target, ok := strings.CutPrefix(s.Verdict, "jump "); ok && (i+1 == len(steps) || steps[i+1].Chain != target) {
			continue
		}
		owner := s.Owner
		switch {
		case s.Foreign:
			owner = "another program"
		case owner == "":
			owner = "-"
		}
		comment := ""
		if s.Comment != "" {
			comment = " # " + s.Comment
		}
		fmt.Fprintf(tw, "  %s %d\t%s\t%s %s\t%s%s\n", s.Hook, s.Priority, owner, s.Table, s.Chain, s.Rule, comment)
		for _, l := range s.Lookups {
			fmt.Fprintf(tw, "  \t\t\t  %s\n", l)
		}
	}
	_ = tw.Flush()
}
