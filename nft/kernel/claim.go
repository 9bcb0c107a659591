package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Claim makes tables the connection's own that an earlier one left; their
// contents stay as they are. Either all are claimed, or none. A table that
// weft did not mark is refused. A table that was made without ownership (by an older
// weft or on an older kernel) is claimed without it.
//
// Until Claim has returned, other processes can change the tables: Dump again
// afterwards where that matters, or use Adopt. Possible errors: *OwnedError,
// ErrForeignTable, ErrUnknownOutcome, ErrBusy, ErrClosed.
func (c *Conn) Claim(dumped []Table) error {
	ids := make([]nft.TableID, len(dumped))
	for i, t := range dumped {
		ids[i] = t.ID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.claim(ids)
}

// Adopt claims all tables that carry weft's mark and reads them: what it
// returns is what the kernel holds, and stays so. Errors are those of Claim
// and Dump.
func (c *Conn) Adopt() ([]Table, error) {
	c.mu.Lock()
	infos, err := c.listTables()
	if err == nil {
		var ids []nft.TableID
		for _, t := range infos {
			if t.ours {
				ids = append(ids, t.id)
			}
		}
		err = c.claim(ids)
	}
	c.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("adopt tables: %w", err)
	}
	return c.Dump()
}

// claim claims tables with the lock held.
func (c *Conn) claim(ids []nft.TableID) error {
	infos, err := c.listTables()
	if err != nil {
		return fmt.Errorf("claim tables: %w", err)
	}
	state := make(map[nft.TableID]tableInfo, len(infos))
	for _, t := range infos {
		state[t.id] = t
	}
	var take []tableInfo
	for _, id := range ids {
		t, exists := state[id]
		switch {
		case !exists:
			return fmt.Errorf("claim table %s: %w", id, unix.ENOENT)
		case !t.ours:
			return fmt.Errorf("claim table %s: %w", id, ErrForeignTable)
		case t.owner != 0 && t.owner != c.portID:
			return fmt.Errorf("claim tables: %w", c.ownedError(id))
		}
		take = append(take, t)
	}
	protected := map[nft.TableID]bool{}
	if c.owner {
		if protected, err = c.takeOver(take); err != nil {
			return fmt.Errorf("claim tables: %w", err)
		}
	}
	c.setTables(func(tables map[nft.TableID]bool) {
		for _, id := range ids {
			tables[id] = protected[id]
		}
	})
	return nil
}

// takeOver makes the connection the owner of tables, and tells of which it
// became the owner: not of those that were made without NFT_TABLE_F_PERSIST.
func (c *Conn) takeOver(tables []tableInfo) (map[nft.TableID]bool, error) {
	for len(tables) > 0 {
		e := &encoder{ackEnd: c.ackEnd, seq: c.seq, op: -1}
		ops := make([]Op, len(tables))
		for i, t := range tables {
			ops[i] = AddTable{Table: t.id, Comment: t.comment}
		}
		if err := e.claims(tables); err != nil {
			return nil, err
		}
		if err := c.sock.reserve(len(e.buf)+sendReserve, minReceive+len(tables)*perError); err != nil {
			return nil, err
		}
		if err := c.sock.drain(); err != nil {
			return nil, err
		}
		c.seq += uint32(len(e.messages))
		if err := c.sock.send(e.buf); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
		r, err := c.collect(e)
		if err != nil {
			return nil, err
		}
		err = r.failure(c, e, ops)
		if err == nil {
			break
		}
		var be *BatchError
		if !errors.As(err, &be) || be.Index < 0 || be.Errno != unix.EOPNOTSUPP {
			return nil, err
		}
		// Made without the flags, which cannot be changed any more.
		tables = append(append([]tableInfo(nil), tables[:be.Index]...), tables[be.Index+1:]...)
	}
	protected := make(map[nft.TableID]bool, len(tables))
	for _, t := range tables {
		protected[t.id] = true
	}
	return protected, nil
}

// claims encodes a batch that makes the connection the owner of tables. Where
// one has vanished since it was listed, it is created with weft's mark.
func (e *encoder) claims(tables []tableInfo) error {
	at := e.begin(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, -1)
	closeMessage(e.buf, at)
	for i, t := range tables {
		e.op = i
		userData, err := userdata.Table(t.comment)
		if err != nil {
			return err
		}
		at := e.begin(msgType(unix.NFT_MSG_NEWTABLE), 0, uint8(t.id.Family), -1)
		e.buf = attr.AppendString(e.buf, unix.NFTA_TABLE_NAME, t.id.Name)
		e.buf = attr.AppendUint32BE(e.buf, nftaTableFlags, tableFlags(true, t.dormant))
		e.buf = attr.AppendBytes(e.buf, nftaTableUserData, userData)
		closeMessage(e.buf, at)
	}
	e.end()
	return nil
}

// ownedError tells who owns a table, as far as that can be found out.
func (c *Conn) ownedError(id nft.TableID) error {
	owned := &OwnedError{Table: id}
	if t, err := c.table(id); err == nil {
		owned.PortID = t.owner
	}
	if owned.PortID != 0 {
		owned.PID, owned.Process = processOf(c.netNS, owned.PortID)
	}
	return owned
}
