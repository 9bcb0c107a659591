package kernel

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Adopt makes all tables with weft's mark, or no table, the connection's own, and returns their
// contents. The kernel then protects them, except tables created without ownership.
//
// Possible errors: *OwnedError, ErrHeld, ErrUnknownOutcome, ErrBusy, ErrClosed, and errors of
// Config.Inherit and Dump.
func (c *Conn) Adopt() ([]Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.inheritSocket(); err != nil {
		return nil, fmt.Errorf("take over the netlink socket: %w", err)
	}
	if err := c.adopt(); err != nil {
		return nil, fmt.Errorf("adopt tables: %w", err)
	}
	tables, err := c.dumpStable()
	if err != nil {
		return nil, fmt.Errorf("dump ruleset: %w", err)
	}
	return tables, nil
}

func (c *Conn) adopt() error {
	tables, err := c.listTables()
	if err != nil {
		return err
	}
	tables = slices.DeleteFunc(tables, func(t TableInfo) bool { return !t.Ours })
	for _, t := range tables {
		if t.Owner != 0 && t.Owner != c.portID.Load() {
			return c.ownedError(t.ID)
		}
	}
	protected := map[nft.TableID]bool{}
	if c.owner {
		if protected, err = c.acquire(tables); err != nil {
			return err
		}
	}
	c.tables.update(func(own map[nft.TableID]bool) {
		for _, t := range tables {
			own[t.ID] = protected[t.ID]
		}
	})
	return nil
}

// acquire returns the tables now owned. The kernel refuses tables without NFT_TABLE_F_PERSIST.
func (c *Conn) acquire(tables []TableInfo) (map[nft.TableID]bool, error) {
	tables = slices.Clone(tables)
	for len(tables) > 0 {
		e := &encoder{features: c.features, buffer: buffer{seq: c.seq}}
		ops := make([]Op, len(tables))
		for i, t := range tables {
			ops[i] = AddTable{Table: t.ID, Comment: t.Comment}
		}
		if err := e.acquire(tables); err != nil {
			return nil, err
		}
		r, err := c.send(e)
		if err != nil {
			return nil, err
		}
		err = c.rejection(e, r, ops)
		if err == nil {
			break
		}
		var be *BatchError
		if !errors.As(err, &be) || be.Index < 0 || be.Errno != unix.EOPNOTSUPP {
			return nil, err
		}
		tables = slices.Delete(tables, be.Index, be.Index+1)
	}
	protected := make(map[nft.TableID]bool, len(tables))
	for _, t := range tables {
		protected[t.ID] = true
	}
	return protected, nil
}

// A table deleted since the listing is created again, with weft's mark.
func (e *encoder) acquire(tables []TableInfo) error {
	e.beginBatch()
	for i, t := range tables {
		e.op = i
		userData, err := userdata.Table(t.Comment)
		if err != nil {
			return err
		}
		e.open(unix.NFT_MSG_NEWTABLE, 0, t.ID)
		e.uint32(unix.NFTA_TABLE_FLAGS, tableFlags(true, t.Dormant))
		e.bytes(nftaTableUserData, userData)
	}
	e.endBatch()
	return nil
}
