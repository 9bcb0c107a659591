package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/mdlayher/netlink"
	rtnetlink "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// maxInterrupts is how often a pass is repeated because the kernel says that
// the table changed under it. kube-proxy takes 5 as well.
const maxInterrupts = 5

// sweep removes the flows that m calls stale, in one pass for each family that
// m has targets in.
func (c *Conn) sweep(ctx context.Context, m *matcher) (deleted int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(m.ports) > 0 {
		if m.local, err = c.localAddrs(); err != nil {
			return 0, err
		}
	}
	for _, family := range families {
		f, ok := m.filter(family)
		if !ok {
			continue
		}
		n, err := c.sweepFamily(ctx, m, f)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// sweepFamily makes the pass of one family, again where it was interrupted.
func (c *Conn) sweepFamily(ctx context.Context, m *matcher, f filter) (deleted int, err error) {
	for range maxInterrupts {
		var n int
		n, err = c.pass(ctx, m, f)
		deleted += n
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	// nfnetlink answers EINVAL where a subsystem is not loaded.
	if errors.Is(err, unix.EINVAL) && !loaded() {
		return deleted, nil
	}
	return deleted, err
}

// pass reads the flows of a family once and removes the stale ones as it goes.
// It returns an error that wraps EINTR where the table changed so that the
// dump may have missed flows. An entry that can't be removed does not stop the
// pass.
func (c *Conn) pass(ctx context.Context, m *matcher, f filter) (deleted int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if !c.reply {
		f.from = end{}
	}
	req, err := dumpRequest(f)
	if err != nil {
		return 0, err
	}
	c.passes.Add(1)
	if _, err := c.dump.Send(req); err != nil {
		return 0, fmt.Errorf("dump flows: %w", err)
	}
	var errs []error
	var stale []netlink.Message
	remove := func() {
		n, err := c.remove(stale)
		deleted, stale = deleted+n, stale[:0]
		if err != nil {
			errs = append(errs, err)
		}
	}
	interrupted := false
	for msg, err := range c.dump.ReceiveIter() {
		if err == nil {
			// Leaving the loop discards the rest of the dump.
			err = ctx.Err()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("dump flows: %w", err))
			break
		}
		c.read.Add(1)
		interrupted = interrupted || msg.Header.Flags&netlink.DumpInterrupted != 0
		if flow, ok := decodeUDP(msg.Data); !ok || !m.stale(flow) {
			continue
		}
		if req, ok := deleteRequest(msg.Data); ok {
			stale = append(stale, req)
		}
		if len(stale) == deleteBatch {
			remove()
		}
	}
	remove()
	if interrupted {
		errs = append(errs, fmt.Errorf("dump flows: table changed during the dump: %w", unix.EINTR))
	}
	return deleted, errors.Join(errs...)
}

// loaded reports whether the kernel tracks connections at all.
func loaded() bool {
	_, err := os.Stat("/proc/sys/net/netfilter/nf_conntrack_max")
	return !errors.Is(err, os.ErrNotExist)
}

// localAddrs returns the addresses of the namespace's interfaces.
func (c *Conn) localAddrs() (map[netip.Addr]struct{}, error) {
	var list []rtnetlink.Addr
	var err error
	for range maxInterrupts {
		if list, err = c.addrs.AddrList(nil, rtnetlink.FAMILY_ALL); !errors.Is(err, rtnetlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list local addresses: %w", err)
	}
	out := make(map[netip.Addr]struct{}, len(list))
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			out[plain(addr)] = struct{}{}
		}
	}
	return out, nil
}
