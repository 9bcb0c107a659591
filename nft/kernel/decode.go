package kernel

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/userdata"
)

// tableInfo is what is read of any table.
type tableInfo struct {
	id      nft.TableID
	comment string
	// ours is true where the userdata carries weft's mark.
	ours bool
	// owner is the netlink port of the owner; 0 for none.
	owner uint32
	// dormant is true where the base chains are off their hooks.
	dormant bool
}

// decodeTable decodes a NEWTABLE. Userdata that weft did not write is no error:
// the table is just not ours.
func decodeTable(m reply) (tableInfo, error) {
	t := tableInfo{id: nft.TableID{Family: m.family}}
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_TABLE_NAME:
			t.id.Name = a.Text()
		case nftaTableUserData:
			if info, err := userdata.ParseTable(a.Bytes()); err == nil {
				t.ours, t.comment = info.Ours, info.Comment
			}
		case nftaTableOwner:
			t.owner = a.Uint32BE()
		case nftaTableFlags:
			t.dormant = a.Uint32BE()&unix.NFT_TABLE_F_DORMANT != 0
		}
	}
	return t, a.Err()
}

// decodeChain decodes a NEWCHAIN; nil for a chain of another table.
func decodeChain(m reply, table string) (*object.Chain, error) {
	chain := &object.Chain{}
	base := func() *object.Base {
		if chain.Base == nil {
			chain.Base = &object.Base{}
		}
		return chain.Base
	}
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_CHAIN_TABLE:
			if !a.TextIs(table) {
				return nil, nil //nolint:nilnil // nothing of a foreign table is decoded
			}
		case unix.NFTA_CHAIN_NAME:
			chain.Name = a.Text()
		case unix.NFTA_CHAIN_HOOK:
			if err := decodeHook(a.Bytes(), base()); err != nil {
				return nil, fmt.Errorf("chain %s: hook: %w", chain.Name, err)
			}
		case unix.NFTA_CHAIN_POLICY:
			base().Drop = a.Uint32BE() == policy(true)
		case unix.NFTA_CHAIN_TYPE:
			base().Type = a.Text()
		case nftaChainFlags:
			if a.Uint32BE()&chainOffload != 0 {
				base().Offload = true
			}
		case nftaChainUserData:
			comment, err := userdata.ParseChain(a.Bytes())
			if err != nil {
				return nil, fmt.Errorf("chain %s: %w", chain.Name, err)
			}
			chain.Comment = comment
		}
	}
	return chain, a.Err()
}

// decodeHook decodes where a base chain is attached.
func decodeHook(b []byte, base *object.Base) error {
	a := attr.NewReader(b)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_HOOK_HOOKNUM:
			base.Hook = a.Uint32BE()
		case unix.NFTA_HOOK_PRIORITY:
			base.Priority = int32(a.Uint32BE())
		case unix.NFTA_HOOK_DEV:
			base.Device = a.Text()
		case nftaHookDevs:
			names, err := decodeDevices(a.Bytes())
			if err != nil {
				return err
			}
			// The kernel gives a single device in both ways.
			if len(names) == 1 {
				base.Device = names[0]
			} else {
				base.Device, base.Devices = "", object.NewDevices(names)
			}
		}
	}
	return a.Err()
}

// ruleInfo is what is read of a rule.
type ruleInfo struct {
	table, chain string
	handle       uint64
	info         userdata.RuleInfo
	writes       []compile.Write
}

// decodeRule decodes a NEWRULE, without its expressions: the fingerprint in
// the userdata stands for them, but for what the rule writes into maps. Userdata
// that cannot be read is that of somebody else's rule.
func decodeRule(m reply) (ruleInfo, error) {
	var r ruleInfo
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_RULE_TABLE:
			r.table = a.Text()
		case unix.NFTA_RULE_CHAIN:
			r.chain = a.Text()
		case unix.NFTA_RULE_HANDLE:
			r.handle = a.Uint64BE()
		case unix.NFTA_RULE_USERDATA:
			if info, err := userdata.ParseRule(a.Bytes()); err == nil {
				r.info = info
			}
		case unix.NFTA_RULE_EXPRESSIONS:
			// Almost no rule has one.
			if !bytes.Contains(a.Bytes(), []byte("dynset\x00")) {
				continue
			}
			var err error
			if r.writes, err = compile.ParseWrites(a.Bytes()); err != nil {
				return r, fmt.Errorf("rule %d of chain %s: %w: %w", r.handle, r.chain, ErrMalformed, err)
			}
		}
	}
	return r, a.Err()
}

// decodeHandle returns the handle of an echoed NEWRULE.
func decodeHandle(payload []byte) (uint64, error) {
	if len(payload) < genLen {
		return 0, ErrMalformed
	}
	a := attr.NewReader(payload[genLen:])
	for a.Next() {
		if a.Type() == unix.NFTA_RULE_HANDLE {
			n := a.Uint64BE()
			return n, a.Err()
		}
	}
	return 0, errors.Join(ErrMalformed, a.Err())
}
