package cyclonus

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// network is three nodes with all pods of the cases, even while the API lacks them.
type network struct {
	lab    *lab.Lab
	agents map[string]*agent
	places map[string]place

	// only their answers count
	asked, streamed atomic.Pointer[round]
	last            uint32
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	l, err := lab.New(lab.Config{Nodes: 3})
	must(t, err)
	t.Cleanup(l.Close)
	n := &network{lab: l, agents: map[string]*agent{}, places: map[string]place{}}
	for i, key := range podKeys() {
		node := l.Nodes[i%len(l.Nodes)]
		pod, err := node.NewPod(key)
		must(t, err)
		n.places[key] = place{node.Name(), pod.Addresses.All()}
		n.agents[key] = newAgent(t, pod, n)
	}
	return n
}

// The bounds of a round.
const (
	// silence bounds a late answer after the last question. A pod answers within a millisecond; a busy
	// machine needs more.
	silence = 150 * time.Millisecond
	// patience is the first round's wait for required answers. Later rounds wait longer.
	patience = 400 * time.Millisecond
	// bound is the longest delay from a change of objects to its effect on packets.
	bound = 20 * time.Second
)

// round is one question to every flow, and a second one for UDP: on an old socket, so that the
// connection is established, and on a new one.
type round struct {
	number uint32
	flows  []flow
	// two items for each flow
	arrivals, answers []atomic.Int32
}

func (n *network) newRound(want map[flow]bool) *round {
	n.last++
	r := &round{number: n.last, flows: slices.Collect(maps.Keys(want))}
	r.arrivals, r.answers = make([]atomic.Int32, 2*len(r.flows)), make([]atomic.Int32, 2*len(r.flows))
	return r
}

func (r *round) nonce(i int) uint64 { return uint64(r.number)<<32 | uint64(i) }

// difference is a denied flow that passed, or an allowed one that did not.
type difference struct {
	flow
	want bool
	// established is true on a socket of earlier rounds.
	established bool
}

func (d difference) String() string {
	verb, kind := "passes", ""
	if d.want {
		verb = "does not pass"
	}
	if d.established {
		kind = " (a flow of earlier rounds)"
	}
	return fmt.Sprintf("%s > %s %s %s%s", d.from, d.to, d.Flow, verb, kind)
}

func (n *network) arrived(nonce uint64) {
	if r, i := n.ofRound(nonce); r != nil {
		r.arrivals[i].Add(1)
	}
}

func (n *network) answered(nonce uint64) {
	if r, i := n.ofRound(nonce); r != nil {
		r.answers[i].Add(1)
	}
}

// ofRound returns the current question with the nonce, or nil.
func (n *network) ofRound(nonce uint64) (*round, uint32) {
	for _, r := range []*round{n.asked.Load(), n.streamed.Load()} {
		if index := uint32(nonce); r != nil && r.number == uint32(nonce>>32) && int(index) < len(r.answers) {
			return r, index
		}
	}
	return nil, 0
}

// agree asks in rounds until a round has no difference, or until bound.
func (n *network) agree(ctx context.Context, want map[flow]bool) ([]difference, error) {
	wait := patience
	for deadline := time.Now().Add(bound); ; wait = min(wait*3/2, 4*time.Second) {
		if d, err := n.differ(ctx, want, wait); err != nil || len(d) == 0 || time.Now().After(deadline) {
			return d, err
		}
	}
}

// differ asks once along all flows at the same time, and returns the unexpected results.
func (n *network) differ(ctx context.Context, want map[flow]bool, wait time.Duration) ([]difference, error) {
	r := n.newRound(want)
	n.asked.Store(r)
	fresh, err := n.freshUDP()
	if err != nil {
		return nil, err
	}
	defer closeUDP(fresh)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var asking sync.WaitGroup
	for i, f := range r.flows {
		a := n.agents[f.from]
		to := netip.AddrPortFrom(f.To, uint16(f.Port))
		nonce := r.nonce(2 * i)
		if f.Protocol == corev1.ProtocolTCP {
			asking.Go(func() { a.ask(ctx, nil, f.Protocol, to, nonce) })
			continue
		}
		a.ask(ctx, fresh[f.from][family(f.To)], f.Protocol, to, nonce)
		if f.Protocol == corev1.ProtocolUDP {
			a.ask(ctx, a.udp[family(f.To)], f.Protocol, to, nonce+1)
		}
	}
	r.wait(ctx, want)
	cancel()
	asking.Wait()
	return r.differences(want), nil
}

// freshUDP makes new sockets in every pod.
func (n *network) freshUDP() (map[string][2]*net.UDPConn, error) {
	fresh := map[string][2]*net.UDPConn{}
	for key, a := range n.agents {
		var conns [2]*net.UDPConn
		for family := range conns {
			var err error
			if conns[family], err = a.newUDP(family); err != nil {
				return nil, err
			}
		}
		fresh[key] = conns
	}
	return fresh, nil
}

func closeUDP(fresh map[string][2]*net.UDPConn) {
	for _, conns := range fresh {
		conns[0].Close()
		conns[1].Close()
	}
}

// wait waits for the required answers, and at least silence for forbidden ones, or until a forbidden
// one comes.
func (r *round) wait(ctx context.Context, want map[flow]bool) {
	start := time.Now()
	denied := false
	for _, allowed := range want {
		denied = denied || !allowed
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if denied && time.Since(start) < silence {
			continue
		}
		missing, passed := false, false
		for _, d := range r.differences(want) {
			missing, passed = missing || d.want, passed || !d.want
		}
		if passed || !missing {
			return
		}
	}
}

func (r *round) differences(want map[flow]bool) []difference {
	var all []difference
	for i, f := range r.flows {
		if !r.fits(2*i, want[f]) {
			all = append(all, difference{f, want[f], false})
		}
		if f.Protocol == corev1.ProtocolUDP && !r.fits(2*i+1, want[f]) {
			all = append(all, difference{f, want[f], true})
		}
	}
	return all
}

// fits reports whether a question is answered, or has not even arrived.
func (r *round) fits(i int, allowed bool) bool {
	if allowed {
		return r.answers[i].Load() > 0
	}
	return r.answers[i].Load() == 0 && r.arrivals[i].Load() == 0
}
