package cyclonus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// network is three nodes with all pods of the cases, even while the API lacks them.
type network struct {
	lab    *lab.Lab
	agents map[string]*agent
	places map[string]place

	// only its answers count
	round atomic.Pointer[round]
	last  uint32
}

func newNetwork() (*network, error) {
	n := &network{agents: map[string]*agent{}, places: map[string]place{}}
	var err error
	if n.lab, err = lab.New(lab.Config{Nodes: 3}); err != nil {
		return nil, err
	}
	for i, key := range podKeys() {
		node := n.lab.Nodes[i%len(n.lab.Nodes)]
		pod, err := node.NewPod(key)
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		n.places[key] = place{node.Name(), pod.Addresses.All()}
		if n.agents[key], err = newAgent(pod, n); err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	return n, nil
}

func (n *network) close() error {
	var errs []error
	for _, a := range n.agents {
		errs = append(errs, a.close())
	}
	n.lab.Close()
	return errors.Join(errs...)
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
	arrivals, answers []atomic.Bool
}

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
		r.arrivals[i].Store(true)
	}
}

func (n *network) answered(nonce uint64) {
	if r, i := n.ofRound(nonce); r != nil {
		r.answers[i].Store(true)
	}
}

// ofRound returns the current round's question with the nonce, or nil.
func (n *network) ofRound(nonce uint64) (*round, uint32) {
	r, index := n.round.Load(), uint32(nonce)
	if r == nil || r.number != uint32(nonce>>32) || int(index) >= len(r.answers) {
		return nil, 0
	}
	return r, index
}

// agree asks in rounds until a round has no difference, or until bound.
func (n *network) agree(ctx context.Context, want map[flow]bool) (d []difference, rounds int, err error) {
	wait := patience
	for deadline := time.Now().Add(bound); ; wait = min(wait*3/2, 4*time.Second) {
		rounds++
		if d, err = n.differ(ctx, want, wait); err != nil || len(d) == 0 || time.Now().After(deadline) {
			return d, rounds, err
		}
	}
}

// differ asks once along all flows at the same time, and returns the unexpected results.
func (n *network) differ(ctx context.Context, want map[flow]bool, wait time.Duration) ([]difference, error) {
	n.last++
	r := &round{number: n.last}
	for f := range want {
		r.flows = append(r.flows, f)
	}
	r.arrivals, r.answers = make([]atomic.Bool, 2*len(r.flows)), make([]atomic.Bool, 2*len(r.flows))
	n.round.Store(r)
	fresh, err := n.freshUDP()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, conns := range fresh {
			conns[0].Close()
			conns[1].Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var asking sync.WaitGroup
	for i, f := range r.flows {
		a := n.agents[f.from]
		to := netip.AddrPortFrom(f.To, uint16(f.Port))
		nonce := uint64(r.number)<<32 | uint64(2*i)
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
		return r.answers[i].Load()
	}
	return !r.answers[i].Load() && !r.arrivals[i].Load()
}
