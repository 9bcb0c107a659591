package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/mdlayher/netlink"
	route "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// maxInterrupts is how often a dump is tried while the kernel reports that
// the table changed during it. kube-proxy also tries 5 times.
const maxInterrupts = 5

// sweep removes the flows that m selects, in one pass for each family in which
// m has destinations. What names the operation in errors.
func (c *Conn) sweep(ctx context.Context, what string, m *matcher) (deleted int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", what, explain(err))
		}
	}()
	if len(m.ports) > 0 {
		if m.local, err = c.localAddrs(); err != nil {
			return 0, fmt.Errorf("list local addresses: %w", err)
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

// sweepFamily makes the pass of one family, and repeats it if it was interrupted.
func (c *Conn) sweepFamily(ctx context.Context, m *matcher, f filter) (deleted int, err error) {
	for range maxInterrupts {
		var n int
		n, err = c.pass(ctx, m, f)
		deleted += n
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	// nfnetlink returns EINVAL if a subsystem is not loaded.
	if errors.Is(err, unix.EINVAL) && !loaded() {
		return deleted, nil
	}
	return deleted, err
}

// pass reads the flows of a family once and removes those that m selects.
// It returns an error that wraps EINTR if the table changed so that the
// dump may have missed flows. If an entry cannot be removed, the pass continues.
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
	var removals []netlink.Message
	remove := func() {
		n, err := c.remove(removals)
		deleted, removals = deleted+n, removals[:0]
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
		if flow, ok := decodeUDP(msg.Data); !ok || !m.remove(flow) {
			continue
		}
		if req, ok := deleteRequest(msg.Data); ok {
			removals = append(removals, req)
		}
		if len(removals) == deleteBatch {
			remove()
		}
	}
	remove()
	if interrupted {
		errs = append(errs, fmt.Errorf("dump flows: table changed during the dump: %w", unix.EINTR))
	}
	return deleted, errors.Join(errs...)
}

// loaded reports whether the kernel has loaded nf_conntrack.
func loaded() bool {
	_, err := os.Stat("/proc/sys/net/netfilter/nf_conntrack_max")
	return !errors.Is(err, os.ErrNotExist)
}

// localAddrs returns the addresses of the namespace's interfaces. net.InterfaceAddrs
// would return those of the calling thread's namespace.
func (c *Conn) localAddrs() (map[netip.Addr]struct{}, error) {
	list, err := c.route.AddrList(nil, route.FAMILY_ALL)
	for i := 1; i < maxInterrupts && errors.Is(err, route.ErrDumpInterrupted); i++ {
		list, err = c.route.AddrList(nil, route.FAMILY_ALL)
	}
	if err != nil && !errors.Is(err, route.ErrDumpInterrupted) {
		return nil, err
	}
	out := make(map[netip.Addr]struct{}, len(list))
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			out[normalize(addr)] = struct{}{}
		}
	}
	return out, nil
}
