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

// Stale selects the flows of a UDP destination whose backends changed. State directories have its
// JSON form.
type Stale struct {
	// Addr and Port are the original destination of the flows. The unspecified address of a family
	// (0.0.0.0, ::) means all local addresses of the family in the namespace, as for a NodePort.
	// The zero Addr means the local addresses of the families of Removed, or of both if Removed is
	// empty. IPv4-mapped addresses are IPv4 addresses.
	Addr netip.Addr
	Port uint16
	// Removed are the removed backends. Flows with replies from them are removed, even if their
	// destination is no longer local.
	Removed []netip.AddrPort `json:"Gone"`
	// First means that the destination had no backends before. Untranslated flows are removed.
	First bool `json:"Unrouted"`
	// At are further, not local addresses of a destination without Addr, for untranslated flows
	// only.
	At map[netip.Addr]struct{} `json:"-"`
	// Answered, set in addition to First, selects the flows begun by the destination instead. An
	// answer on its way makes an entry after an untranslated flow is removed, and the client's
	// packets belong to that entry and are never translated.
	Answered bool `json:"-"`
}

// Destination lists the backends of a UDP destination. A Destination with an address precedes one
// for all local addresses.
type Destination struct {
	// As in Stale, with Backends in place of Removed.
	Addr     netip.Addr
	Port     uint16
	Backends []netip.AddrPort
	At       map[netip.Addr]struct{}
}

// Conn is for one network namespace.
type Conn struct {
	// mu is held for a whole pass, because a dump needs the socket alone.
	mu sync.Mutex
	// deleting can be held together with mu.
	deleting        sync.Mutex
	dump, delete    *netlink.Conn
	route, arrivals *netlink.Conn
	// reply means that the kernel can filter by the source of replies.
	reply        bool
	passes, read atomic.Uint64
}

// Open opens a Conn in the network namespace of the calling thread. The error wraps
// [os.ErrPermission] if CAP_NET_ADMIN is missing.
func Open() (*Conn, error) {
	c := &Conn{}
	if err := c.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open conntrack: %w", explain(err)), c.Close())
	}
	return c, nil
}

func (c *Conn) open() (err error) {
	// The kernel fills a part of a dump up to the buffer size, at most 32 KiB.
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

// Flush removes the UDP flows that changes made invalid, and returns their number. It reads the
// table at most once per family and value of Answered, up to five times if the table changes
// meanwhile. After an error, removed flows are counted, and Flush may be called again.
func (c *Conn) Flush(ctx context.Context, changes []Stale) (deleted int, err error) {
	for _, answered := range []bool{false, true} {
		m := matchChanges(changes, answered)
		n, err := c.sweep(ctx, "flush udp flows", m)
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// Reconcile removes the UDP flows to a destination with replies from other addresses than its
// backends, and returns their number. A destination without backends loses all its flows.
func (c *Conn) Reconcile(ctx context.Context, destinations []Destination) (deleted int, err error) {
	return c.sweep(ctx, "reconcile udp flows", matchDestinations(destinations))
}

// Passes returns the number of reads of the table, with repetitions; each walks the whole table.
func (c *Conn) Passes() uint64 { return c.passes.Load() }

func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: connection tracking needs CAP_NET_ADMIN over the network namespace", err)
	}
	return err
}
