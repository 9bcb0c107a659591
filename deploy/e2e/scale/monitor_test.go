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

// monitor notes the times of the kernel's commits in a namespace, as `nft monitor` sees them.
type monitor struct {
	fd    int
	ended chan struct{}
	quit  atomic.Bool

	mu sync.Mutex
	// awaited has the expected addresses, seen their times, and arrived the time of the last.
	awaited map[[4]byte]struct{}
	seen    map[netip.Addr]time.Time
	arrived time.Time
	// messages by type (NFT_MSG_*)
	counts map[byte]int
	// the time of the last transaction
	committed time.Time
	// news is closed and replaced with each commit and with the last expected address.
	news chan struct{}
	err  error
}

// The buffer of newMonitor holds the notifications of 100,000 elements.
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
		// A read times out, to check for the end.
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

// read looks for expected addresses. Netlink attributes and parts of a concatenation are aligned to
// four bytes.
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

// The caller holds the lock.
func (m *monitor) wake() {
	close(m.news)
	m.news = make(chan struct{})
}

func (m *monitor) expect(addresses ...netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range addresses {
		m.awaited[a.As4()] = struct{}{}
	}
}

// forget stops waiting for missing addresses, and returns their number.
func (m *monitor) forget() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.awaited)
	clear(m.awaited)
	clear(m.seen)
	return n
}

// zero if the address has not come
func (m *monitor) when(a netip.Addr) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[a]
}

// all waits for all expected addresses, and returns the time of the last.
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

// next waits for the first commit at or after the given time.
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

// written counts elements and rules that were written or removed since the last call.
func (m *monitor) written() (elements, rules int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	elements = m.counts[unix.NFT_MSG_NEWSETELEM] + m.counts[unix.NFT_MSG_DELSETELEM]
	rules = m.counts[unix.NFT_MSG_NEWRULE] + m.counts[unix.NFT_MSG_DELRULE]
	clear(m.counts)
	return elements, rules
}
