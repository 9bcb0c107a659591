package kernel

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/weft-proxy/weft/nft"
)

// Config configures a Conn. Its zero value is for production.
type Config struct {
	// NetNS is a file descriptor of the network namespace; 0 means the calling thread's.
	NetNS int
	// NoOwner disables ownership.
	NoOwner bool
	// Inherit returns the socket of an earlier connection, which still owns its tables, or nil.
	// Adopt calls it until it returns a socket. ErrHeld means that a process uses the socket.
	Inherit func() (*os.File, error)
}

// Conn is a connection to nf_tables. While open, it owns its tables, from Linux 6.9 on.
type Conn struct {
	features
	inherit func() (*os.File, error)
	portID  atomic.Uint32
	tables  ownTables

	mu sync.Mutex // guards the fields below
	link
	// gen is the ruleset's generation after the last commit or dump.
	gen   uint32
	spare []byte
}

// ownTables are the created and adopted tables of a connection.
type ownTables struct {
	mu sync.Mutex
	// protected is true if the kernel protects the table.
	protected map[nft.TableID]bool
}

// lookup returns ok if the connection created or adopted a table.
func (o *ownTables) lookup(id nft.TableID) (protected, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	protected, ok = o.protected[id]
	return protected, ok
}

func (o *ownTables) update(f func(protected map[nft.TableID]bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(o.protected)
}

// Open opens a connection and probes the kernel's features, without changing the ruleset. Possible
// errors: ErrPermission, ErrNoNFTables, ErrTooOld, and errors of the system calls.
func Open(cfg Config) (*Conn, error) {
	sock, err := dial(cfg.NetNS)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	c := &Conn{link: link{netNS: cfg.NetNS, sock: sock, seq: 1}, inherit: cfg.Inherit}
	c.tables.protected = map[nft.TableID]bool{}
	c.portID.Store(sock.portID)
	if err := c.probe(cfg.NoOwner); err != nil {
		return nil, errors.Join(fmt.Errorf("open nftables: %w", err), sock.close())
	}
	return c, nil
}

// Close closes the connection; its tables remain, without an owner. Later calls fail with
// ErrClosed, except Watch, DumpSet and DumpLive.
func (c *Conn) Close() error {
	if err := c.sock.close(); err != nil {
		return fmt.Errorf("close nftables: %w", err)
	}
	return nil
}

// Owner reports whether new tables are protected from other processes.
func (c *Conn) Owner() bool { return c.owner }

// Unprotected reports whether other processes can change some of the connection's tables. Batches
// then carry the generation.
func (c *Conn) Unprotected() (found bool) {
	c.tables.update(func(protected map[nft.TableID]bool) {
		for _, is := range protected {
			found = found || !is
		}
	})
	return found || !c.owner
}

// Generation returns the number of the last transaction of any process in the network namespace.
func (c *Conn) Generation() (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gen, err := c.generation()
	if err != nil {
		return 0, fmt.Errorf("get ruleset generation: %w", err)
	}
	return gen, nil
}
