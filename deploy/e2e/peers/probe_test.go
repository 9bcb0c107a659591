package peers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const probePort = 7777

// echo answers until the socket is closed.
func echo(pod *lab.Pod) (net.PacketConn, error) {
	conn, err := listen(pod, "udp4", fmt.Sprintf(":%d", probePort))
	if err != nil {
		return nil, err
	}
	go func() {
		b := make([]byte, 64)
		for {
			n, from, err := conn.ReadFrom(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = conn.WriteTo(b[:n], from)
			}
		}
	}()
	return conn, nil
}

func listen(pod *lab.Pod, network, address string) (net.PacketConn, error) {
	var conn net.PacketConn
	err := pod.Do(func() (err error) {
		conn, err = net.ListenPacket(network, address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open socket in %s: %w", pod.Name(), err)
	}
	return conn, nil
}

// pair is a client that sends packets to a server, each from another port, so that each begins a flow.
type pair struct {
	name   string
	conn   net.PacketConn // raw: with the UDP header
	server *net.IPAddr

	mu     sync.Mutex
	probes []probe
}

type probe struct {
	sent     time.Time
	answered bool
}

func newPair(client, server *lab.Pod, interval time.Duration) (*pair, error) {
	conn, err := listen(client, "ip4:udp", client.Addresses.V4.String())
	if err != nil {
		return nil, err
	}
	p := &pair{name: client.Name() + " to " + server.Name(), conn: conn, server: &net.IPAddr{IP: server.Addresses.V4.AsSlice()}}
	go p.send(interval)
	go p.receive()
	return p, nil
}

// The header of UDP: two ports, the length and a checksum, which is optional in IPv4.
const (
	headerLength = 8
	probeLength  = headerLength + 8
)

func (p *pair) send(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	b := make([]byte, probeLength)
	binary.BigEndian.PutUint16(b[2:], probePort)
	binary.BigEndian.PutUint16(b[4:], probeLength)
	for range tick.C {
		p.mu.Lock()
		number := len(p.probes)
		p.probes = append(p.probes, probe{sent: time.Now()})
		p.mu.Unlock()
		const first, last = 10_000, 65_535
		binary.BigEndian.PutUint16(b, uint16(first+number%(last-first)))
		binary.BigEndian.PutUint64(b[headerLength:], uint64(number))
		if _, err := p.conn.WriteTo(b, p.server); errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// receive notes answers. A raw socket gets all UDP packets to its address, from any server.
func (p *pair) receive() {
	b := make([]byte, 128)
	for {
		n, from, err := p.conn.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n != probeLength || from.String() != p.server.String() || binary.BigEndian.Uint16(b) != probePort {
			continue
		}
		number := binary.BigEndian.Uint64(b[headerLength:])
		p.mu.Lock()
		if number < uint64(len(p.probes)) {
			p.probes[number].answered = true
		}
		p.mu.Unlock()
	}
}

func (p *pair) close() { _ = p.conn.Close() }

// judgement counts the packets of a pair since a time.
type judgement struct {
	right, wrong int
	// turned is the time of the first packet after the last wrong one.
	turned time.Time
}

// grace bounds an answer.
const grace = 300 * time.Millisecond

// judge leaves out the last packets, because their answers may be on the way.
func (p *pair) judge(since time.Time, allowed bool) judgement {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := time.Now().Add(-grace)
	var j judgement
	for i := len(p.probes) - 1; i >= 0; i-- {
		switch one := p.probes[i]; {
		case one.sent.Before(since):
			return j
		case one.sent.After(end):
		case one.answered == allowed:
			j.right++
			if j.wrong == 0 {
				j.turned = one.sent
			}
		default:
			j.wrong++
		}
	}
	return j
}

// stable is the time without a wrong packet after which a change counts as enforced.
const stable = time.Second

// settled waits until the packets of the pair are right, and returns the beginning of that period.
func (p *pair) settled(ctx context.Context, since time.Time, allowed bool) (time.Time, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		j := p.judge(since, allowed)
		if !j.turned.IsZero() && time.Since(j.turned) > stable+grace {
			return j.turned, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait for packets from %s, allowed=%t: %d right, %d wrong: %w", p.name, allowed, j.right, j.wrong, ctx.Err())
		}
	}
}
