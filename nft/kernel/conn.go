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
	netNS int
	features
	inherit func() (*os.File, error)
	portID  atomic.Uint32

	mu   sync.Mutex // guards the fields below, and use of the socket
	sock *socket
	seq  uint32
	// gen is the ruleset's generation after the last commit or dump.
	gen   uint32
	spare []byte

	// tables are the created and adopted tables; true if the kernel protects the table. tablesMu
	// guards them.
	tablesMu sync.Mutex
	tables   map[nft.TableID]bool
}

// Open opens a connection and probes the kernel's features, without changing the ruleset. Possible
// errors: ErrPermission, ErrNoNFTables, ErrTooOld, and errors of the system calls.
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

// Unprotected reports whether other processes can change some of the connection's tables.
func (c *Conn) Unprotected() bool { return c.guarded() }

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

// lookup returns ok if the connection created or adopted a table.
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
