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
	"golang.org/x/sys/unix"
)

// Change says how the backends of a UDP destination changed. Its JSON form, in which the
// aggregator stores changes, is stable.
type Change struct {
	// Addr and Port are the original destination of the flows. The unspecified
	// address of a family (0.0.0.0, ::) means all local addresses of the family in the
	// namespace, as for a NodePort: flows to the same port of other hosts that were not translated
	// are not affected. The zero Addr means the local addresses of the families of Removed,
	// or of both families if Removed is empty. IPv4-mapped addresses are IPv4 addresses.
	Addr netip.Addr
	Port uint16
	// Removed are the backends that the destination no longer has. Flows whose replies
	// come from them are removed. A flow that was translated to one is removed whether its destination is
	// still a local address or not.
	Removed []netip.AddrPort `json:"Gone"`
	// First is true if the destination had no backends before. Flows that were not
	// translated are removed.
	First bool `json:"Unrouted"`
	// At are addresses that are not local and that have the destination nevertheless, if it has no
	// address of its own. Only flows that were not translated are looked for there.
	At map[netip.Addr]struct{} `json:"-"`
	// Answered is true if the flows to remove are those that the destination has begun, besides First. An
	// answer that is on its way when a flow that was not translated is removed makes an entry of its
	// own. The packets of the client then belong to that entry, and are never translated.
	Answered bool `json:"-"`
}

// Destination lists the backends of a UDP destination. For a flow to an address and port
// that have a Destination of their own, one for all local addresses does not count.
type Destination struct {
	// Addr, Port and At are as in Change, with Backends in place of Removed.
	Addr netip.Addr
	Port uint16
	// Backends are all backends of the destination.
	Backends []netip.AddrPort
	At       map[netip.Addr]struct{}
}

// Conn removes flows in one network namespace.
type Conn struct {
	// mu is held for a whole pass, because a dump cannot share its socket.
	mu sync.Mutex
	// deleting is held while entries are deleted. It can be taken while mu is held.
	deleting     sync.Mutex
	dump, delete *netlink.Conn
	// route lists the local addresses of the namespace, arrivals receives those that it gets.
	route, arrivals *netlink.Conn
	// reply is true if the kernel can filter by the source of replies.
	reply bool
	// passes counts requested dumps, read counts received entries.
	passes, read atomic.Uint64
}

// Open opens the sockets of a Conn in the network namespace of the calling
// thread, and checks that the process may remove flows in it. The error wraps
// [os.ErrPermission] if CAP_NET_ADMIN is missing.
func Open() (*Conn, error) {
	c := &Conn{}
	if err := c.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open conntrack: %w", explain(err)), c.Close())
	}
	return c, nil
}

// open opens the sockets and probes the kernel.
func (c *Conn) open() (err error) {
	// The kernel fills one part of a dump up to the size of the reader's buffer, and up
	// to 32 KiB.
	if c.dump, err = netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{MessageBufferSize: 32 << 10}); err != nil {
		return err
	}
	if c.delete, err = netlink.Dial(unix.NETLINK_NETFILTER, nil); err != nil {
		return err
	}
	if err := c.dialRoute(); err != nil {
		return err
	}
	if err := c.probe(); err != nil {
		return err
	}
	c.reply, err = c.filtersReplies()
	return err
}

// Close closes the sockets.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleting.Lock()
	defer c.deleting.Unlock()
	var errs []error
	for _, sock := range []*netlink.Conn{c.dump, c.delete, c.route, c.arrivals} {
		if sock != nil {
			errs = append(errs, sock.Close())
		}
	}
	return errors.Join(errs...)
}

// Flush removes the UDP flows that changes made invalid, and returns how many it removed.
// It reads the table at most once per family and value of Answered, or up to five times if the kernel reports
// that the table changed during the read, and not at all if changes is empty. On an error,
// flows removed so far stay removed and are counted; calling Flush again with the same
// argument is safe.
func (c *Conn) Flush(ctx context.Context, changes []Change) (deleted int, err error) {
	for _, answered := range []bool{false, true} {
		m := matchChanges(changes, answered)
		n, err := c.sweep(ctx, "flush udp flows", m)
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// Reconcile removes the UDP flows to a destination whose replies do not come
// from one of its backends, including flows that were not translated, and returns how
// many it removed. A destination without backends loses all its flows. Reconcile is meant
// for the start, when it is not known what changed since the last run.
func (c *Conn) Reconcile(ctx context.Context, destinations []Destination) (deleted int, err error) {
	return c.sweep(ctx, "reconcile udp flows", matchDestinations(destinations))
}

// Passes returns how often the table was read, for both families together, including
// repetitions of interrupted reads. Each pass makes the kernel walk the whole table.
func (c *Conn) Passes() uint64 { return c.passes.Load() }

// explain adds what to do about a missing capability.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: connection tracking needs CAP_NET_ADMIN over the network namespace", err)
	}
	return err
}
