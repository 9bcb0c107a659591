package cyclonus

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// interval is the time between two packets of a flow of a stream.
const interval = 10 * time.Millisecond

// stream sends questions by UDP along flows with one verdict: half of them on new sockets, half on sockets of
// earlier rounds.
type stream struct {
	*round
	want    map[flow]bool
	fresh   map[string][2]*net.UDPConn
	sent    []int
	cancel  context.CancelFunc
	senders sync.WaitGroup
}

// startStream sends for each pod until stop.
func (n *network) startStream(t *testing.T, want map[flow]bool) *stream {
	t.Helper()
	fresh, err := n.freshUDP()
	must(t, err)
	s := &stream{round: n.newRound(want), want: want, fresh: fresh}
	s.sent = make([]int, len(s.flows))
	n.streamed.Store(s.round)
	flows := map[string][]int{}
	for i, f := range s.flows {
		flows[f.from] = append(flows[f.from], i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.cancel = cancel
	for key, mine := range flows {
		s.senders.Go(func() { s.send(ctx, n.agents[key], mine) })
	}
	return s
}

// send skips packets that are late.
func (s *stream) send(ctx context.Context, from *agent, flows []int) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, i := range flows {
			f := s.flows[i]
			socket := from.udp[family(f.To)]
			if i%2 == 0 {
				socket = s.fresh[f.from][family(f.To)]
			}
			from.ask(ctx, socket, f.Protocol, netip.AddrPortFrom(f.To, uint16(f.Port)), s.nonce(2*i))
			s.sent[i]++
		}
	}
}

// stop waits for the last answers, and returns the number of packets and the wrong flows.
func (s *stream) stop() (packets int, wrong []string) {
	s.cancel()
	s.senders.Wait()
	<-time.After(silence)
	for deadline := time.Now().Add(patience); len(s.wrong()) > 0 && time.Now().Before(deadline); {
		<-time.After(20 * time.Millisecond)
	}
	closeUDP(s.fresh)
	for _, n := range s.sent {
		packets += n
	}
	return packets, s.wrong()
}

// wrong has the denied flows of which a packet has passed, and the allowed ones that miss an answer.
func (s *stream) wrong() (lines []string) {
	for i, f := range s.flows {
		arrived, answered := int(s.arrivals[2*i].Load()), int(s.answers[2*i].Load())
		if !s.want[f] && arrived+answered > 0 {
			lines = append(lines, fmt.Sprintf("%s > %s %s: %d of %d packets pass", f.from, f.to, f.Flow, arrived, s.sent[i]))
		}
		if s.want[f] && answered != s.sent[i] {
			lines = append(lines, fmt.Sprintf("%s > %s %s: %d of %d packets are answered", f.from, f.to, f.Flow, answered, s.sent[i]))
		}
	}
	return lines
}
