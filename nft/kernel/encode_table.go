package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/userdata"
)

// addTable appends a new table, or a change of an existing one.
func (e *encoder) addTable(op AddTable) error {
	if err := checkName("table", op.Table.Name); err != nil {
		return err
	}
	userData, err := userdata.Table(op.Comment)
	if err != nil {
		return err
	}
	exists, created := e.exists(op.Table), e.tables[op.Table].created
	flags := uint16(unix.NLM_F_CREATE)
	if !exists {
		flags |= unix.NLM_F_EXCL
	}
	// The kernel refuses to change the flags of ownership of an existing table.
	owner := e.owner
	if exists && !created && e.own != nil {
		owner, _ = e.own(op.Table)
	}
	e.open(unix.NFT_MSG_NEWTABLE, flags, op.Table)
	e.uint32(unix.NFTA_TABLE_FLAGS, tableFlags(owner, op.Dormant))
	e.bytes(nftaTableUserData, userData)
	e.setTable(op.Table, tableChange{exists: true, created: !exists || created})
	return nil
}

// tableFlags returns the flags of a table that this connection created or adopted.
func tableFlags(owner, dormant bool) uint32 {
	var flags uint32
	if owner {
		flags = tableFlagsWhenOwned
	}
	if dormant {
		flags |= unix.NFT_TABLE_F_DORMANT
	}
	return flags
}

func (e *encoder) deleteTable(id nft.TableID) {
	e.open(unix.NFT_MSG_DELTABLE, 0, id)
	e.setTable(id, tableChange{})
	for chain := range e.tails {
		if chain.table == id {
			delete(e.tails, chain)
		}
	}
}

// addChain appends a new chain, or a change of an existing base chain.
func (e *encoder) addChain(op AddChain) error {
	if op.Chain == nil {
		return errors.New("chain is nil")
	}
	if err := checkName("chain", op.Chain.Name); err != nil {
		return err
	}
	base := op.Chain.Base
	flags := uint16(unix.NLM_F_CREATE)
	if base == nil {
		// A regular chain has nothing that can be changed.
		flags |= unix.NLM_F_EXCL
	}
	e.open(unix.NFT_MSG_NEWCHAIN, flags, op.Table)
	if err := e.fields(encodedChain(op.Chain).fields()); err != nil {
		return err
	}
	if base == nil || e.tables[op.Table].created {
		if e.tails == nil {
			e.tails = map[chainID]*Handle{}
		}
		if id := (chainID{op.Table, op.Chain.Name}); base == nil || e.tails[id] == nil {
			e.tails[id] = nil
		}
	}
	return nil
}

// addObject appends a named object.
func (e *encoder) addObject(op AddObject) error {
	o := op.Object
	if o == nil {
		return errors.New("object is nil")
	}
	if err := checkName(string(o.Kind), o.Name); err != nil {
		return err
	}
	e.open(unix.NFT_MSG_NEWOBJ, unix.NLM_F_CREATE|unix.NLM_F_EXCL, op.Table)
	return e.fields(objectFields(o))
}

// deleteObject appends the deletion of an object.
func (e *encoder) deleteObject(op DeleteObject) error {
	typ := op.Ref.Type()
	if typ == 0 {
		return fmt.Errorf("unknown kind of object %q", op.Ref.Kind)
	}
	e.remove(unix.NFT_MSG_DELOBJ, op.Table, unix.NFTA_OBJ_NAME, op.Ref.Name)
	e.uint32(unix.NFTA_OBJ_TYPE, typ)
	return nil
}

// addFlowtable appends a flowtable.
func (e *encoder) addFlowtable(op AddFlowtable) error {
	f := op.Flowtable
	if f == nil {
		return errors.New("flowtable is nil")
	}
	if err := checkName("flowtable", f.Name); err != nil {
		return err
	}
	e.open(unix.NFT_MSG_NEWFLOWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, op.Table)
	return e.fields(flowtableFields(f))
}
