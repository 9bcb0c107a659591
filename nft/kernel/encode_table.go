package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/userdata"
)

func (e *encoder) addTable(op AddTable) error {
	userData, err := userdata.Table(op.Comment)
	if err != nil {
		return err
	}
	exists, created := e.exists(op.Table), e.tables[op.Table].created
	flags := uint16(unix.NLM_F_CREATE)
	if !exists {
		flags |= unix.NLM_F_EXCL
	}
	// The kernel refuses to change ownership flags.
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

func (e *encoder) addChain(op AddChain) error {
	base := op.Chain.Base
	flags := uint16(unix.NLM_F_CREATE)
	if base == nil {
		// a regular chain cannot be changed
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
