package scale

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// monitor hears what the kernel commits in a namespace, as `nft monitor` does, and
// notes when.
type monitor struct {
	fd    int
	ended chan struct{}
	quit  atomic.Bool

	mu sync.Mutex
	// awaited has the addresses that somebody waits for, seen when they came, and
	// arrived when the last one did.
	awaited map[[4]byte]struct{}
	seen    map[netip.Addr]time.Time
	arrived time.Time
	// counts are the messages of each type (NFT_MSG_*).
	counts map[byte]int
	// committed is when the last transaction was.
	committed time.Time
	// news is closed, and replaced, with each commit and when the last address has come.
	news chan struct{}
	err  error
}

// newMonitor listens until it is closed. Its buffer holds what a transaction of
// 100,000 elements notifies of.
func newMonitor(n *lab.Namespace) (*monitor, error) {
	m := &monitor{
		ended: make(chan struct{}), awaited: map[[4]byte]struct{}{}, seen: map[netip.Addr]time.Time{},
		counts: map[byte]int{}, news: make(chan struct{}),
	}
	err := n.Do(func() error {
		var err error
		if m.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER); err != nil {
			return err
		}
		// A read ends from time to time, to see whether it is time to go.
		patience := unix.NsecToTimeval((100 * time.Millisecond).Nanoseconds())
		return errors.Join(
			unix.SetsockoptInt(m.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 256<<20),
			unix.SetsockoptTimeval(m.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience),
			unix.Bind(m.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}),
			unix.SetsockoptInt(m.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.NFNLGRP_NFTABLES),
		)
	})
	if err != nil {
		return nil, fmt.Errorf("listen to nftables in %s: %w", n.Name(), err)
	}
	go m.run()
	return m, nil
}

// close ends the subscription to the kernel.
func (m *monitor) close() error {
	m.quit.Store(true)
	<-m.ended
	return errors.Join(m.err, unix.Close(m.fd))
}

func (m *monitor) run() {
	defer close(m.ended)
	buf := make([]byte, 1<<20)
	for !m.quit.Load() {
		n, _, err := unix.Recvfrom(m.fd, buf, 0)
		switch {
		case err == nil:
			m.read(buf[:n], time.Now())
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		default:
			m.mu.Lock()
			m.err = fmt.Errorf("listen to nftables: %w", err)
			m.mu.Unlock()
			return
		}
	}
}

// read looks through messages for the addresses that are awaited. A netlink
// attribute and every part of a concatenation begin at a multiple of four.
func (m *monitor) read(b []byte, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(b) >= unix.NLMSG_HDRLEN {
		length := int(binary.NativeEndian.Uint32(b))
		if length < unix.NLMSG_HDRLEN || length > len(b) {
			return
		}
		kind := byte(binary.NativeEndian.Uint16(b[4:]))
		m.counts[kind]++
		switch {
		case kind == unix.NFT_MSG_NEWGEN:
			m.committed = now
			m.wake()
		case len(m.awaited) > 0 && (kind == unix.NFT_MSG_NEWSETELEM || kind == unix.NFT_MSG_NEWRULE):
			for i := unix.NLMSG_HDRLEN; i+4 <= length; i += 4 {
				word := [4]byte(b[i : i+4])
				if _, ok := m.awaited[word]; ok {
					m.seen[netip.AddrFrom4(word)], m.arrived = now, now
					delete(m.awaited, word)
				}
			}
			if len(m.awaited) == 0 {
				m.wake()
			}
		}
		b = b[min(len(b), (length+3)&^3):]
	}
}

// wake tells those who wait. The lock is held.
func (m *monitor) wake() {
	close(m.news)
	m.news = make(chan struct{})
}

// expect says which addresses are to come.
func (m *monitor) expect(addresses ...netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range addresses {
		m.awaited[a.As4()] = struct{}{}
	}
}

// forget ends the waiting for what did not come, and returns how many those were.
func (m *monitor) forget() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.awaited)
	clear(m.awaited)
	clear(m.seen)
	return n
}

// when returns the time at which an address came, zero for not yet.
func (m *monitor) when(a netip.Addr) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[a]
}

// all waits for everything that is expected, and returns when the last of it came.
func (m *monitor) all(ctx context.Context) (time.Time, error) {
	for {
		m.mu.Lock()
		left, arrived, news, err := len(m.awaited), m.arrived, m.news, m.err
		m.mu.Unlock()
		if left == 0 || err != nil {
			return arrived, err
		}
		select {
		case <-news:
		case <-m.ended:
		case <-ctx.Done():
			return arrived, fmt.Errorf("wait for new addresses in the kernel: %d did not come: %w", left, ctx.Err())
		}
	}
}

// next waits for the first commit that is not before the time given.
func (m *monitor) next(ctx context.Context, after time.Time) (time.Time, error) {
	for {
		m.mu.Lock()
		committed, news, err := m.committed, m.news, m.err
		m.mu.Unlock()
		if committed.After(after) || err != nil {
			return committed, err
		}
		select {
		case <-news:
		case <-m.ended:
		case <-ctx.Done():
			return committed, fmt.Errorf("wait for a commit: %w", ctx.Err())
		}
	}
}

// written returns how many elements and rules were written or removed since the
// last call.
func (m *monitor) written() (elements, rules int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	elements = m.counts[unix.NFT_MSG_NEWSETELEM] + m.counts[unix.NFT_MSG_DELSETELEM]
	rules = m.counts[unix.NFT_MSG_NEWRULE] + m.counts[unix.NFT_MSG_DELRULE]
	clear(m.counts)
	return elements, rules
}
