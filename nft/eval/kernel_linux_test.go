package eval_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

var (
	rulesets = flag.Int("rulesets", 12, "number of random rulesets that are compared with the kernel")
	packets  = flag.Int("packets", 100, "number of packets that are sent through each ruleset")
	seed     = flag.Uint64("seed", 1, "seed of the random rulesets and packets")
)

// tally counts the results of a comparison.
type tally struct{ packets, replies, own, six, undecided, branched, dropped, forwarded, rewritten, steps int }

// TestKernelAgrees sends random packets through random rulesets, and compares what the kernel
// traces and forwards with the outcomes of Evaluate: packets of IPv4 and IPv6, of a client and of the node itself,
// and the replies to what arrives. A figure of a million packets:
//
//	go test ./nft/eval -run TestKernelAgrees -v -rulesets 200 -packets 5000 -timeout 0
func TestKernelAgrees(t *testing.T) {
	var sum tally
	for i := range *rulesets {
		random := rand.New(rand.NewPCG(*seed, uint64(i)))
		t.Run(fmt.Sprintf("ruleset %d", i), func(t *testing.T) { compare(t, random, &sum) })
	}
	share := 100 * float64(sum.undecided) / float64(max(sum.packets, 1))
	t.Logf("%d rulesets, %d packets (%d of IPv6, %d of the node itself), and %d replies, %d steps: %d forwarded, %d rewritten, %d dropped, %d with several outcomes, %d (%.2f %%) undecided",
		*rulesets, sum.packets-sum.replies, sum.six, sum.own, sum.replies, sum.steps, sum.forwarded, sum.rewritten, sum.dropped, sum.branched, sum.undecided, share)
	if sum.forwarded == 0 || sum.dropped == 0 || sum.rewritten == 0 || sum.branched == 0 || sum.six == 0 || sum.own == 0 || sum.replies == 0 {
		t.Errorf("the packets do not cover all results: %+v", sum)
	}
	if share > 2 {
		t.Errorf("%.2f %% of the packets are undecided, want at most 2", share)
	}
}

// compare sends packets through one random ruleset.
func compare(t *testing.T, random *rand.Rand, sum *tally) {
	lab := newLab(t)
	text, packet := randomRuleset(random), randomPacket
	if random.IntN(2) == 0 {
		text, packet = six.Replace(text), randomPacket6
	}
	conn, _ := readBack(t, lab)
	rules := commitText(t, conn, text)
	comparePackets(t, lab, conn, func() *eval.Ruleset { return rules }, text, packet, *packets, random, sum)
}

// comparePackets sends random packets through a ruleset that the kernel has. Rules returns it, with the
// elements that earlier packets have added if they matter.
func comparePackets(t *testing.T, lab *lab, conn *kernel.Conn, rules func() *eval.Ruleset, text string, packet func(*rand.Rand, int, bool) []byte, count int, random *rand.Rand, sum *tally) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := nfttest.Must(conn.Trace(ctx))
	// taken are the flows that the server has received.
	taken := make(map[string]bool)
	for n := range count {
		own := random.IntN(3) == 0
		p := eval.Packet{Data: packet(random, n, own), Conn: &eval.Conn{State: eval.StateNew}}
		from := lab.node
		if own {
			// Root's sockets send them.
			p.Owner = eval.Owner{UID: new(uint32), GID: new(uint32)}
		} else {
			from, p.In = lab.client, lab.in
		}
		if p.Source().Is6() {
			sum.six++
		}
		if own {
			sum.own++
		}
		// compare returns what the kernel did, and the only outcome that agrees; nil if there is none.
		compare := func(p eval.Packet, from, to *nfttest.NS) (observation, *eval.Outcome) {
			outcomes, complete, err := eval.Evaluate(rules(), p, lab.host())
			if err != nil {
				t.Fatal(err)
			}
			got := lab.send(t, p.Data, from, to, events)
			sum.add(outcomes, complete, got)
			agreed := agreeing(outcomes, got, taken)
			if complete && len(agreed) == 0 {
				t.Fatalf("packet %d %x of ruleset\n%s\nthe kernel: %s\nthe evaluator: %s", n, p.Data, text, got, describe(outcomes))
			}
			if len(agreed) != 1 || agreed[0].Verdict == eval.Undecided {
				return got, nil
			}
			if o := agreed[0]; !o.AnySourcePort && got.data != nil && !bytes.Equal(got.data, o.Packet.Data) {
				return got, nil // its port was taken
			}
			return got, agreed[0]
		}
		got, agreed := compare(p, from, lab.server)
		if got.data != nil {
			taken[flow(got.data)] = true
		}
		if agreed == nil || got.data == nil {
			continue
		}
		if conn := replied(agreed, got.data, strings.Contains(text, "type nat")); conn != nil {
			sum.replies++
			compare(eval.Packet{Data: replyTo(got.data), In: lab.out, Conn: conn}, lab.server, lab.client)
		}
	}
}

// replied returns the connection of a packet that the server has received, as the reply finds it. It is nil if it
// is not known: the kernel has chosen the identifier of an echo.
func replied(o *eval.Outcome, received []byte, nat bool) *eval.Conn {
	const seenReply, confirmed, done = 1 << 1, 1 << 3, 1<<7 | 1<<8 // IPS_SEEN_REPLY, IPS_CONFIRMED, IPS_NAT_DONE_MASK
	conn := *o.Packet.Conn
	if o.AnySourcePort {
		at, protocol := transport(received)
		if protocol != unix.IPPROTO_TCP && protocol != unix.IPPROTO_UDP {
			return nil
		}
		conn.Replies.Destination = netip.AddrPortFrom(conn.Replies.Destination.Addr(), binary.BigEndian.Uint16(received[at:]))
	}
	conn.State, conn.Reply = eval.StateEstablished, true
	conn.Status |= seenReply | confirmed
	if nat {
		conn.Status |= done
	}
	return &conn
}

// add counts a packet. One with an undecided outcome, or with too many, is undecided.
func (s *tally) add(outcomes []eval.Outcome, complete bool, got observation) {
	s.packets++
	s.steps += len(got.steps)
	if !complete || slices.ContainsFunc(outcomes, func(o eval.Outcome) bool { return o.Verdict == eval.Undecided }) {
		s.undecided++
	}
	if len(outcomes) > 1 {
		s.branched++
	}
	switch {
	case got.dropped:
		s.dropped++
	case got.data != nil:
		s.forwarded++
	}
	if got.translated {
		s.rewritten++
	}
}

// agreeing returns the outcomes that say what the kernel did. An undecided one must be the beginning of it.
// If another packet with the source port of an outcome has been received, because a rule chose it for that one, the kernel
// chooses another one for this packet.
func agreeing(outcomes []eval.Outcome, got observation, taken map[string]bool) (all []*eval.Outcome) {
	for i := range outcomes {
		o := &outcomes[i]
		want := stepTexts(o)
		if o.Verdict == eval.Undecided {
			if len(got.steps) >= len(want) && slices.Equal(got.steps[:len(want)], want) {
				all = append(all, o)
			}
			continue
		}
		if !slices.Equal(got.steps, want) || (o.Verdict == eval.Drop) != got.dropped {
			continue
		}
		chosen := o.AnySourcePort || got.translated && taken[flow(o.Packet.Data)]
		if got.data == nil || bytes.Equal(withoutPort(got.data, chosen), withoutPort(o.Packet.Data, chosen)) {
			all = append(all, o)
		}
	}
	return all
}

// withoutPort returns a packet of TCP, UDP or ICMP without its source port or identifier and its
// checksum, if the kernel has chosen the port.
func withoutPort(data []byte, chosen bool) []byte {
	if !chosen {
		return data
	}
	out := bytes.Clone(data)
	at, protocol := transport(out)
	port, sum := 0, 6
	switch protocol {
	case unix.IPPROTO_TCP:
		sum = 16
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		port, sum = 4, 2
	}
	clear(out[at+port : at+port+2])
	clear(out[at+sum : at+sum+2])
	return out
}

// transport returns the offset of the transport header of a packet, and its protocol.
func transport(data []byte) (at int, protocol byte) {
	if data[0]>>4 == 6 {
		return 40, data[6]
	}
	return int(data[0]&15) * 4, data[9]
}

// flow returns what connection tracking tells a packet of TCP, UDP or ICMP from others by: the protocol, the
// addresses, and the ports or the type and the identifier.
func flow(data []byte) string {
	at, protocol := transport(data)
	addresses, ports := data[12:20], data[at:at+4]
	if data[0]>>4 == 6 {
		addresses = data[8:40]
	}
	if protocol == unix.IPPROTO_ICMP || protocol == unix.IPPROTO_ICMPV6 {
		ports = []byte{data[at], 0, data[at+4], data[at+5]}
	}
	return string(slices.Concat([]byte{protocol}, addresses, ports))
}

// stepTexts returns the steps that the kernel traces.
func stepTexts(o *eval.Outcome) []string {
	var out []string
	for _, s := range o.Steps[o.Traced:] {
		out = append(out, fmt.Sprintf("%s %s %d %s", s.Table, s.Chain, s.Rule, s.Verdict))
	}
	return out
}

// describe prints outcomes for an error.
func describe(outcomes []eval.Outcome) string {
	var b strings.Builder
	for i := range outcomes {
		o := &outcomes[i]
		fmt.Fprintf(&b, "\n%s %s %v %x\n  %s", o.Verdict, o.Reason, o.Choices, o.Packet.Data, strings.Join(stepTexts(o), "\n  "))
	}
	return b.String()
}

// nextEvent waits for an event of the kernel.
func nextEvent(t *testing.T, events <-chan kernel.TraceEvent) kernel.TraceEvent {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok || e.Type == kernel.TraceOverrun || e.Type == kernel.TraceFailed {
			t.Fatalf("the trace ended: %+v", e)
		}
		return e
	case <-time.After(time.Minute):
		t.Fatal("the kernel does not report the end of the packet")
		return kernel.TraceEvent{}
	}
}

var stockPackets = flag.Int("stock.packets", 300, "number of packets that are sent through each ruleset of another program")

// TestStockRulesetsAgree loads rulesets as other programs make them with nft and iptables, sends packets through
// them, and compares what the kernel does with the outcomes for the ruleset that is read back from it.
//
//	go test ./nft/eval -run TestStockRulesetsAgree -v -stock.packets 20000 -timeout 0
func TestStockRulesetsAgree(t *testing.T) {
	// iptables is of the variant that makes nftables' rules.
	const restore = "iptables-nft-restore"
	files, err := filepath.Glob("testdata/stock/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rulesets: %v", err)
	}
	var all tally
	for i, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := nfttest.Must(os.ReadFile(file))
			lab := newLab(t)
			if strings.HasSuffix(file, ".iptables") {
				lab.node.Nft(t, tracing)
				if out, err := lab.node.Output(string(text), restore); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			} else {
				lab.node.Nft(t, tracing+string(text))
			}
			conn, rules := readBack(t, lab)
			var sum tally
			comparePackets(t, lab, conn, rules, string(text), randomPacket, *stockPackets, rand.New(rand.NewPCG(*seed, uint64(i))), &sum)
			t.Logf("%d packets, %d steps: %d forwarded, %d rewritten, %d dropped, %d with several outcomes, %d undecided",
				sum.packets, sum.steps, sum.forwarded, sum.rewritten, sum.dropped, sum.branched, sum.undecided)
			all.packets, all.steps, all.undecided = all.packets+sum.packets, all.steps+sum.steps, all.undecided+sum.undecided
			if sum.forwarded == 0 || sum.rewritten == 0 || sum.dropped == 0 {
				t.Error("the packets do not cover all results")
			}
			if sum.undecided*50 > sum.packets {
				t.Errorf("%d of %d packets are undecided: want at most 2 %%", sum.undecided, sum.packets)
			}
		})
	}
	t.Logf("%d rulesets, %d packets, %d steps, %d (%.2f %%) undecided", len(files), all.packets, all.steps, all.undecided, 100*float64(all.undecided)/float64(all.packets))
}

// readBack returns a function that reads the rules of the node from the kernel, without the elements that a Ruleset
// remembers, and a connection for traces.
func readBack(t *testing.T, lab *lab) (conn *kernel.Conn, rules func() *eval.Ruleset) {
	t.Helper()
	conn = nfttest.Must(kernel.Open(kernel.Config{NetNS: lab.node.FD()}))
	t.Cleanup(func() { _ = conn.Close() })
	reader := nfttest.Must(kernel.OpenReader(kernel.Config{NetNS: lab.node.FD()}))
	t.Cleanup(func() { _ = reader.Close() })
	return conn, func() *eval.Ruleset {
		return nfttest.Must(load.Kernel(reader))
	}
}
