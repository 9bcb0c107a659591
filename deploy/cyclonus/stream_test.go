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
	// times are when packets were sent. They are of the stream's goroutine until it ends.
	times             []time.Time
	arrivals, answers atomic.Int64
	answered          [longest]atomic.Bool
}

// longest is how many packets each flow of a stream may have.
const longest = 60_000

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
			if len(f.times) == longest {
				return
			}
			a := s.network.agents[f.from]
			a.ask(ctx, a.udp[family(f.To)], f.Protocol, netip.AddrPortFrom(f.To, uint16(f.Port)), ofStream|uint64(len(f.times))<<8|uint64(i))
			f.times = append(f.times, time.Now())
		}
	}
}

func (s *stream) arrived(nonce uint64) { s.flows[nonce&0xff].arrivals.Add(1) }

func (s *stream) answered(nonce uint64) {
	f := &s.flows[nonce&0xff]
	f.answers.Add(1)
	f.answered[nonce&^ofStream>>8].Store(true)
}

// lost returns when the first and the last packet without an answer was sent.
func (f *streamed) lost() string {
	var first, last time.Time
	for i, at := range f.times {
		if !f.answered[i].Load() {
			if first.IsZero() {
				first = at
			}
			last = at
		}
	}
	return first.UTC().Format("15:04:05.000") + " to " + last.UTC().Format("15:04:05.000")
}

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
				total.denied, total.passed = total.denied+len(f.times), total.passed+passed
				if passed > 0 {
					wrong = append(wrong, fmt.Sprintf("%s > %s %s: %d of %d packets pass", f.from, f.to, f.Flow, passed, len(f.times)))
				}
				continue
			}
			lost := len(f.times) - int(f.answers.Load())
			total.allowed, total.lost = total.allowed+len(f.times), total.lost+lost
			if lost != 0 {
				wrong = append(wrong, fmt.Sprintf("%s > %s %s: %d of %d packets are lost (%d arrived), from %s", f.from, f.to, f.Flow, lost, len(f.times), f.arrivals.Load(), f.lost()))
			}
		}
		if len(wrong) == 0 || time.Now().After(deadline) {
			return total, wrong
		}
		<-time.After(10 * time.Millisecond)
	}
}
