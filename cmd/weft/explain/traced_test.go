package explain

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
)

var traceTable = nft.TableID{Family: nft.FamilyInet, Name: "t"}

// tracer is a collector whose packets are kept.
type tracer struct {
	*collector
	got    []*Traced
	events chan kernel.TraceEvent
	done   chan error
	loads  int
}

func startTracer(t *testing.T, ctx context.Context, count int) *tracer {
	t.Helper()
	r := &tracer{events: make(chan kernel.TraceEvent), done: make(chan error, 1)}
	base := eval.Chain{Decl: &object.Chain{Name: "in", Base: &object.Base{Type: "filter", Hook: unix.NF_INET_LOCAL_IN}}, Rules: []eval.Rule{{Handle: 4, Text: "tcp dport 22 drop", Comment: "no ssh"}}}
	rules := &eval.Ruleset{Tables: []eval.Table{{ID: traceTable, Chains: []eval.Chain{base}}}}
	r.collector = &collector{
		asker: &asker{host: &host{links: map[int]eval.Interface{1: {Index: 1, Name: "lo"}}}, rules: rules},
		own:   "weft-trace-", left: count,
		load:  func() (*eval.Ruleset, error) { r.loads++; return rules, nil },
		print: func(p *Traced) error { r.got = append(r.got, p); return nil },
	}
	go func() { r.done <- r.run(ctx, r.events) }()
	return r
}

// event is an event of a packet of IPv4 and TCP to a port; first adds the headers.
func event(id uint32, chain string, rule uint64, code int32, first bool) kernel.TraceEvent {
	e := kernel.TraceEvent{Type: kernel.TraceRule, ID: id, Table: traceTable, Chain: chain, Rule: rule, Verdict: set.Verdict{Code: code}, In: 1}
	if rule == 0 {
		e.Type, e.Policy = kernel.TracePolicy, code
	}
	if first {
		data := flow{source: netip.MustParseAddrPort("10.0.0.1:4000"), destination: netip.MustParseAddrPort(fmt.Sprintf("10.0.0.2:%d", 1000+id)), protocol: unix.IPPROTO_TCP}.packet(false)
		e.Network, e.Transport = data[:20], data[20:]
	}
	return e
}

// selected is the event of the rule of weft trace that selects a packet.
func selected(id uint32) kernel.TraceEvent {
	e := event(id, "prerouting", 9, datatype.VerdictContinue, true)
	e.Table.Name = "weft-trace-x"
	return e
}

// TestTracedPackets has packets whose events are mixed: each is printed by itself, in the order of their
// beginnings.
func TestTracedPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startTracer(t, t.Context(), 3)
		for _, e := range []kernel.TraceEvent{
			selected(1), selected(2), event(2, "in", 4, datatype.VerdictDrop, true), event(1, "in", 0, datatype.VerdictAccept, true),
			selected(3), event(3, "in", 77, datatype.VerdictContinue, true),
		} {
			r.events <- e
		}
		must(t, <-r.done)
		var got []string
		for _, p := range r.got {
			got = append(got, fmt.Sprintf("%s %s %s %s %d: %s", p.In, p.Flags, p.To, p.Verdict, len(p.Steps), p.Sentence))
		}
		want := []string{
			"lo syn 10.0.0.2:1001 accept 1: The packet passed all rules.",
			"lo syn 10.0.0.2:1002 drop 1: Dropped: another program does not let it pass. Have that program accept it: an accept in weft's tables does not help.",
			"lo syn 10.0.0.2:1003 accept 1: The packet passed all rules.",
		}
		if !slices.Equal(got, want) {
			t.Errorf("packets\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if want := `rule "tcp dport 22 drop" (no ssh) of chain in in table inet t, which is another program's`; r.got[1].By != want {
			t.Errorf("by %s, want %s", r.got[1].By, want)
		}
		if s := r.got[2].Steps[0]; s.Place() != "handle 77 (it is gone) of chain in in table inet t, which is another program's" || s.Hook != "input" || r.loads != 1 {
			t.Errorf("a rule that is not known is %+v, after %d readings", s, r.loads)
		}
	})
}

// TestTracedBounds sends more packets and steps than are kept, says that events were lost, and
// uses an ID again.
func TestTracedBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := startTracer(t, ctx, 1000)
		r.events <- selected(0)
		for range maxSteps + 10 {
			r.events <- event(0, "in", 4, datatype.VerdictContinue, false)
		}
		r.events <- kernel.TraceEvent{Type: kernel.TraceOverrun}
		for id := range uint32(maxOpen + 10) {
			r.events <- selected(id + 1)
			r.events <- event(id+1, "in", 0, datatype.VerdictAccept, true)
		}
		<-time.After(2 * quiet)
		synctest.Wait()
		if n := len(r.got); n != maxOpen || len(r.open)+len(r.order) != 0 {
			t.Fatalf("%d packets, want %d; %d are open", n, maxOpen, len(r.open))
		}
		if p := r.got[0]; len(p.Steps) != maxSteps || !strings.Contains(p.Sentence, "Only its first 512 steps") || !strings.Contains(p.Sentence, "lower --rate") {
			t.Errorf("%d steps: %s", len(p.Steps), p.Sentence)
		}
		for range 2 {
			r.events <- selected(1)
			r.events <- event(1, "in", 4, datatype.VerdictDrop, true)
		}
		close(r.events)
		must(t, <-r.done)
		if n := len(r.got) - maxOpen; n != 2 {
			t.Errorf("%d packets of the same ID, want 2", n)
		}
	})
}

// TestTracedCount counts one packet among those that another program traces, and one that has its ID right after it:
// it has its own steps and no others.
func TestTracedCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startTracer(t, t.Context(), 1)
		for _, e := range []kernel.TraceEvent{
			event(7, "in", 4, datatype.VerdictDrop, true), selected(1), event(8, "in", 0, datatype.VerdictAccept, true),
			event(1, "in", 0, datatype.VerdictAccept, true), selected(1), event(1, "in", 4, datatype.VerdictDrop, true),
		} {
			r.events <- e
		}
		must(t, <-r.done)
		if len(r.got) != 1 {
			t.Fatalf("%d packets, want 1", len(r.got))
		}
		if p := r.got[0]; p.To.Port() != 1001 || p.Verdict != wordAccept || len(p.Steps) != 1 || p.Steps[0].Handle != 0 {
			t.Errorf("got the packet to %s with %d steps: %s; want that to port 1001 with the policy alone", p.To, len(p.Steps), p.Sentence)
		}
	})
}

// TestSelection compiles what selects packets.
func TestSelection(t *testing.T) {
	for _, tt := range []struct {
		selection
		want []string
	}{
		{selection{to: "10.0.0.1:80", rate: 10}, []string{"prerouting", "output", "meta nfproto ipv4 ip daddr { 10.0.0.1 } meta l4proto { tcp, udp, sctp } th dport 80 limit rate 10/second burst 10 packets meta nftrace set 1"}},
		{selection{from: "fd00::1", protocol: "icmp", rate: 1}, []string{"meta nfproto ipv6 ip6 saddr { fd00::1 } meta l4proto ipv6-icmp limit"}},
		{selection{from: "node", to: "10.0.0.1", rate: 1}, []string{"hook output", "!prerouting"}},
		{selection{from: "outside", protocol: "udp", in: "eth0", rate: 1}, []string{`iifname "eth0" meta nfproto ipv4 meta l4proto udp`, "meta nfproto ipv6", "!output"}},
	} {
		text, err := tt.rules(t.Context(), &asker{}, "weft-trace-x")
		must(t, err)
		if _, err := ruleset.Parse("rules", text); err != nil {
			t.Errorf("%v: %v", tt.describe(), err)
		}
		for _, want := range tt.want {
			unwanted, not := strings.CutPrefix(want, "!")
			if strings.Contains(text, unwanted) == not {
				t.Errorf("%v: got\n%s\nwant %q", tt.describe(), text, want)
			}
		}
	}
}
