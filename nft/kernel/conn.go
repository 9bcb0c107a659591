package kernel

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
)

// Config says how to open a Conn. Its zero value is right outside of tests.
type Config struct {
	// NetNS is a file descriptor of the network namespace to work in; 0 means
	// that of the calling thread.
	NetNS int
	// NoOwner leaves table ownership unused even where the kernel has it.
	NoOwner bool
}

// Conn is a connection to nf_tables. As long as it is open it owns the tables
// that it created or claimed (where the kernel can do that).
type Conn struct {
	netNS int
	owner bool
	// ackEnd is true where the kernel acknowledges the end of a batch.
	ackEnd bool
	// destroy is true where the kernel has NFT_MSG_DESTROYSETELEM.
	destroy bool
	portID  uint32

	mu   sync.Mutex // guards what follows, and use of the socket
	sock *socket
	// seq is the sequence number of the next message.
	seq uint32
	// gen is the ruleset generation that the last commit or dump left.
	gen uint32
	// keep is the buffer of the last batch, where it was not too large.
	keep []byte

	// tables are the connection's own; true where the kernel keeps others away.
	tablesMu sync.Mutex
	tables   map[nft.TableID]bool
}

// Open opens the connection and finds out what the kernel can do. It changes
// nothing. Possible errors: ErrPermission, ErrNoNFTables, those of the system calls.
func Open(cfg Config) (*Conn, error) {
	sock, err := dial(cfg.NetNS)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	c := &Conn{
		netNS: cfg.NetNS, sock: sock, portID: sock.portID, seq: 1,
		tables: map[nft.TableID]bool{},
	}
	if err := c.probe(cfg.NoOwner); err != nil {
		return nil, errors.Join(fmt.Errorf("open nftables: %w", err), sock.close())
	}
	return c, nil
}

// Close closes the connection. The tables stay; nobody owns them any more.
func (c *Conn) Close() error {
	if err := c.sock.close(); err != nil {
		return fmt.Errorf("close nftables: %w", err)
	}
	return nil
}

// Owner reports whether new tables are owned by the connection, so that no
// other process can change them (Linux 6.9).
func (c *Conn) Owner() bool { return c.owner }

// Generation returns the number of the ruleset's last change, by anyone in the
// network namespace.
func (c *Conn) Generation() (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gen, err := c.generation()
	if err != nil {
		return 0, fmt.Errorf("get ruleset generation: %w", err)
	}
	return gen, nil
}

// generation is Generation with the lock held.
func (c *Conn) generation() (gen uint32, err error) {
	err = c.request(msgType(unix.NFT_MSG_GETGEN), 0, unix.AF_UNSPEC, nil, func(m reply) error {
		a := attr.NewReader(m.attrs)
		for a.Next() {
			if a.Type() == unix.NFTA_GEN_ID {
				gen = a.Uint32BE()
			}
		}
		return a.Err()
	})
	return gen, err
}

// probe finds out whether the process may change the ruleset, whether tables
// can be owned, whether elements can be destroyed, and whether the end of a
// batch is acknowledged.
//
// The first batch has no end, so that the kernel checks the new table and
// drops it; the second is empty. To destroy an element of a set that is not
// there is ENOENT, or where the kernel does not know the message EINVAL.
func (c *Conn) probe(noOwner bool) error {
	table := nft.TableID{Family: nft.FamilyIP, Name: fmt.Sprintf("weft-probe-%d", c.portID)}
	e := encoder{owner: true, seq: c.seq, op: -1}
	at := e.begin(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, -1)
	closeMessage(e.buf, at)
	probe := e.seq + uint32(len(e.messages))
	at = e.begin(msgType(unix.NFT_MSG_NEWTABLE), unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, uint8(table.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_TABLE_NAME, table.Name)
	e.buf = attr.AppendUint32BE(e.buf, nftaTableFlags, tableFlagsWhenOwned)
	closeMessage(e.buf, at)
	e.named(nftMsgDestroySetElem, table, unix.NFTA_SET_ELEM_LIST_TABLE, unix.NFTA_SET_ELEM_LIST_SET, "probe")

	answered := false
	err := c.exchange(e.buf, len(e.messages), func(h header, ke kernelError) error {
		switch {
		case errors.Is(ke.errno, unix.EPERM):
			return ErrPermission
		case h.seq == probe+1:
			c.destroy = errors.Is(ke.errno, unix.ENOENT)
			return nil
		case h.seq != probe:
			return fmt.Errorf("%w (%w)", ErrNoNFTables, ke.errno)
		}
		answered = true
		c.owner = ke.errno == 0 && !noOwner
		return nil
	})
	if err != nil {
		return err
	}
	if !answered {
		return fmt.Errorf("probe table ownership: no answer: %w", ErrMalformed)
	}

	e = encoder{ackEnd: true, seq: c.seq}
	if err := e.batch(nil); err != nil {
		return err
	}
	err = c.exchange(e.buf, len(e.messages), func(h header, ke kernelError) error {
		if ke.errno != 0 {
			return fmt.Errorf("commit empty batch: %w", ke.errno)
		}
		c.ackEnd = h.seq == e.seq+1
		return nil
	})
	if err != nil {
		return err
	}
	c.gen, err = c.generation()
	return err
}

// exchange sends messages and calls f for each error or acknowledgement.
func (c *Conn) exchange(b []byte, messages int, f func(header, kernelError) error) error {
	if err := c.sock.drain(); err != nil {
		return err
	}
	c.seq += uint32(messages)
	if err := c.sock.send(b); err != nil {
		return err
	}
	return c.replies(func(h header, payload []byte) error {
		if h.typ != unix.NLMSG_ERROR {
			return nil
		}
		ke, err := parseError(h.flags, payload)
		if err != nil {
			return err
		}
		return f(h, ke)
	})
}

// replies calls f for each message that waits in the receive buffer.
func (c *Conn) replies(f func(h header, payload []byte) error) error {
	for {
		b, err := c.sock.recv(false)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		for len(b) > 0 {
			h, payload, rest, ok := nextMessage(b)
			if !ok {
				return ErrMalformed
			}
			if err := f(h, payload); err != nil {
				return err
			}
			b = rest
		}
	}
}

// owns reports whether a table is the connection's own.
func (c *Conn) owns(id nft.TableID) bool {
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	_, ok := c.tables[id]
	return ok
}

// protects reports whether the kernel keeps others away from a table of the
// connection's.
func (c *Conn) protects(id nft.TableID) bool {
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	return c.tables[id]
}

// setTables replaces what f changes of the connection's own tables.
func (c *Conn) setTables(f func(tables map[nft.TableID]bool)) {
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	f(c.tables)
}

// guarded reports whether batches carry the generation: where some table is
// not protected by the kernel.
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
