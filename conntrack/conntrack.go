package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"github.com/mdlayher/netlink"
	rtnetlink "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Stale says which UDP flows to one destination have become stale.
type Stale struct {
	// Addr and Port are the original destination of the flows. The unspecified
	// address of a family (0.0.0.0, ::) stands for every one of it that is local to
	// the namespace, which is what a NodePort is reached at: a flow of the host to the
	// same port elsewhere is none of ours. An invalid Addr stands for both families.
	Addr netip.Addr
	Port uint16
	// Gone are the backends that Addr:Port no longer leads to: flows whose
	// replies come from one of them are removed.
	Gone []netip.AddrPort
	// Unrouted is true where Addr:Port leads to backends from now on and did
	// not before: flows that were not translated are removed.
	Unrouted bool
}

// Live says where UDP flows to one destination may go.
type Live struct {
	// Addr and Port are as in Stale.
	Addr netip.Addr
	Port uint16
	// Backends are all that Addr:Port leads to.
	Backends []netip.AddrPort
}

// Conn removes flows in one network namespace.
type Conn struct {
	// mu is held for a whole pass: a dump must have its socket for itself.
	mu           sync.Mutex
	dump, delete *netlink.Conn
	// addrs lists the addresses of the namespace.
	addrs *rtnetlink.Handle
	// reply is true where the kernel can filter by the reply's source.
	reply bool
	// passes are the dumps that were asked for, read the messages that came.
	passes, read atomic.Uint64
}

// Open opens the sockets of a Conn in the network namespace of the calling
// thread, and checks that flows may be removed in it. The error wraps
// [os.ErrPermission] where CAP_NET_ADMIN is missing.
func Open() (*Conn, error) {
	// 32 KiB is the most that the kernel puts in one part of a dump, and it
	// looks at the size of the reader's buffer.
	dump, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{MessageBufferSize: 32 << 10})
	if err != nil {
		return nil, fmt.Errorf("open conntrack: %w", explain(err))
	}
	c := &Conn{dump: dump}
	if c.delete, err = netlink.Dial(unix.NETLINK_NETFILTER, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("open conntrack: %w", explain(err)), c.Close())
	}
	if c.addrs, err = rtnetlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, errors.Join(fmt.Errorf("open conntrack: open route socket: %w", err), c.Close())
	}
	if err := c.probe(); err != nil {
		return nil, errors.Join(fmt.Errorf("open conntrack: %w", explain(err)), c.Close())
	}
	if c.reply, err = c.filtersReplies(); err != nil {
		return nil, errors.Join(fmt.Errorf("open conntrack: %w", explain(err)), c.Close())
	}
	return c, nil
}

// Close closes the sockets.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if c.dump != nil {
		errs = append(errs, c.dump.Close())
	}
	if c.delete != nil {
		errs = append(errs, c.delete.Close())
	}
	if c.addrs != nil {
		c.addrs.Close()
	}
	return errors.Join(errs...)
}

// Flush removes the UDP flows that stale names and returns how many it
// removed. It reads the table at most once per family, and not at all when
// stale names nothing. On an error, flows removed so far stay removed and are
// counted; calling Flush again with the same argument is safe.
func (c *Conn) Flush(ctx context.Context, stale []Stale) (deleted int, err error) {
	m := newStaleMatcher(stale)
	if deleted, err = c.sweep(ctx, m); err != nil {
		return deleted, fmt.Errorf("flush udp flows: %w", explain(err))
	}
	return deleted, nil
}

// Reconcile removes the UDP flows to a live destination whose replies come
// from none of its backends, untranslated ones included, and returns how many
// it removed. It is meant for the start, when nobody knows what changed while
// weft was away.
func (c *Conn) Reconcile(ctx context.Context, live []Live) (deleted int, err error) {
	m := newLiveMatcher(live)
	if deleted, err = c.sweep(ctx, m); err != nil {
		return deleted, fmt.Errorf("reconcile udp flows: %w", explain(err))
	}
	return deleted, nil
}

// Passes returns how often the table has been read, for either family, repetitions of
// interrupted reads included: what walks all of it, and so costs the node something,
// is counted here.
func (c *Conn) Passes() uint64 { return c.passes.Load() }

// explain adds what to do to the kernel's refusal.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: connection tracking needs CAP_NET_ADMIN over the network namespace", err)
	}
	return err
}
