package cyclonus

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"
)

// stream sends a packet along each of some flows every millisecond: UDP on sockets that live
// on, and SCTP as a new association each time.
type stream struct {
	network *network
	flows   []streamed
	cancel  context.CancelFunc
	done    chan struct{}
}

// streamed is one flow and what became of its packets.
type streamed struct {
	flow
	allowed bool
	// sent is of the stream's goroutine until it ends.
	sent              int
	arrivals, answers atomic.Int64
}

// stream starts one. There must be no other.
func (n *network) newStream(allowed, denied []flow) *stream {
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{network: n, flows: make([]streamed, len(allowed)+len(denied)), cancel: cancel, done: make(chan struct{})}
	for i, f := range append(append([]flow{}, allowed...), denied...) {
		s.flows[i].flow, s.flows[i].allowed = f, i < len(allowed)
	}
	n.stream.Store(s)
	go s.send(ctx)
	return s
}

func (s *stream) send(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i := range s.flows {
			f := &s.flows[i]
			a := s.network.agents[f.from]
			a.ask(ctx, a.udp[family(f.To)], f.Protocol, netip.AddrPortFrom(f.To, uint16(f.Port)), ofStream|uint64(i))
			f.sent++
		}
	}
}

func (s *stream) arrived(nonce uint64)  { s.flows[nonce&^ofStream].arrivals.Add(1) }
func (s *stream) answered(nonce uint64) { s.flows[nonce&^ofStream].answers.Add(1) }

// figures count packets: those of flows that must be denied and those of flows that must be
// allowed, and how many of the first passed and of the second were lost.
type figures struct{ denied, passed, allowed, lost int }

func (f *figures) add(g figures) {
	f.denied, f.passed, f.allowed, f.lost = f.denied+g.denied, f.passed+g.passed, f.allowed+g.allowed, f.lost+g.lost
}

// stop ends the stream, waits for the last answers, and returns what became of its packets
// and a line for each flow that is not as it must be.
func (s *stream) stop() (figures, []string) {
	s.cancel()
	<-s.done
	var total figures
	for deadline := time.Now().Add(time.Second); ; {
		var wrong []string
		total = figures{}
		for i := range s.flows {
			f := &s.flows[i]
			if !f.allowed {
				passed := int(f.arrivals.Load())
				total.denied, total.passed = total.denied+f.sent, total.passed+passed
				if passed > 0 {
					wrong = append(wrong, fmt.Sprintf("%s > %s %s: %d of %d packets pass", f.from, f.to, f.Flow, passed, f.sent))
				}
				continue
			}
			lost := f.sent - int(f.answers.Load())
			total.allowed, total.lost = total.allowed+f.sent, total.lost+lost
			if lost != 0 {
				wrong = append(wrong, fmt.Sprintf("%s > %s %s: %d of %d packets are lost (%d arrived)", f.from, f.to, f.Flow, lost, f.sent, f.arrivals.Load()))
			}
		}
		if len(wrong) == 0 || time.Now().After(deadline) {
			return total, wrong
		}
		<-time.After(10 * time.Millisecond)
	}
}
