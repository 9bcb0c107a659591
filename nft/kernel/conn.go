package kernel

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/weft-proxy/weft/nft"
)

// Config configures a Conn. Its zero value is right outside of tests.
type Config struct {
	// NetNS is a file descriptor of the network namespace. 0 means the calling thread's namespace,
	// so descriptor 0 cannot be used.
	NetNS int
	// NoOwner disables table ownership on kernels that support it.
	NoOwner bool
	// Inherit returns the socket of an earlier connection, which still owns its tables, or nil.
	// Adopt calls it until it returns a socket, and then uses that socket. ErrHeld means that a
	// process uses it.
	Inherit func() (*os.File, error)
}

// Conn is a connection to nf_tables. While open, it owns the tables it created or adopted if the
// kernel supports ownership.
type Conn struct {
	netNS int
	features
	inherit func() (*os.File, error)
	// portID is the netlink port of the socket.
	portID atomic.Uint32

	mu   sync.Mutex // guards the fields below, and use of the socket
	sock *socket
	// seq is the next sequence number.
	seq uint32
	// gen is the ruleset's generation after the last commit or dump.
	gen uint32
	// spare is the buffer of the last batch, if not too large.
	spare []byte

	// tables are the created and adopted tables; true if the kernel protects the table.
	tablesMu sync.Mutex
	tables   map[nft.TableID]bool
}

// Open opens a connection and probes the kernel's features. It does not change the ruleset.
// Possible errors: ErrPermission, ErrNoNFTables, ErrTooOld, and errors of the system calls.
func Open(cfg Config) (*Conn, error) {
	sock, err := dial(cfg.NetNS)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	c := &Conn{
		netNS: cfg.NetNS, inherit: cfg.Inherit, sock: sock, seq: 1,
		tables: map[nft.TableID]bool{},
	}
	c.portID.Store(sock.portID)
	if err := c.probe(cfg.NoOwner); err != nil {
		return nil, errors.Join(fmt.Errorf("open nftables: %w", err), sock.close())
	}
	return c, nil
}

// Close closes the connection. Its tables remain, without an owner. Later calls fail with
// ErrClosed, except Watch, DumpSet and DumpLive.
func (c *Conn) Close() error {
	if err := c.sock.close(); err != nil {
		return fmt.Errorf("close nftables: %w", err)
	}
	return nil
}

// Owner reports whether the connection owns the tables it creates, so that other processes cannot
// change them. This needs Linux 6.9, and a Config without NoOwner.
func (c *Conn) Owner() bool { return c.owner }

// Unprotected reports whether other processes can change some of the connection's tables: all
// without Owner, otherwise adopted tables created without an owner.
func (c *Conn) Unprotected() bool { return c.guarded() }

// Generation returns the ruleset's generation: the number of the last transaction of any process in
// the network namespace.
func (c *Conn) Generation() (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gen, err := c.generation()
	if err != nil {
		return 0, fmt.Errorf("get ruleset generation: %w", err)
	}
	return gen, nil
}

// lookup returns whether the connection created or adopted a table, and whether the kernel protects
// it.
func (c *Conn) lookup(id nft.TableID) (protected, ok bool) {
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	protected, ok = c.tables[id]
	return protected, ok
}

func (c *Conn) setTables(f func(tables map[nft.TableID]bool)) {
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	f(c.tables)
}

// guarded reports whether batches must carry the generation.
func (c *Conn) guarded() bool {
	if !c.owner {
		return true
	}
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	for _, protected := range c.tables {
		if !protected {
			return true
		}
	}
	return false
}
