package kernel

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/userdata"
)

// tableInfo is what is read of any table.
type tableInfo struct {
	id      nft.TableID
	comment string
	// ours is true if the userdata carries weft's mark.
	ours bool
	// owner is the netlink port of the owner; 0 if there is none.
	owner uint32
	// dormant is true if the base chains are detached from their hooks.
	dormant bool
	// persist is true if the table stays when its owner ends.
	persist bool
}

// decodeTable decodes a NEWTABLE. Userdata that cannot be parsed means that weft did
// not create the table.
func decodeTable(m reply) (tableInfo, error) {
	t := tableInfo{id: nft.TableID{Family: m.family}}
	var flags uint32
	var userData []byte
	err := attr.Fields{
		attr.Always(unix.NFTA_TABLE_NAME, &t.id.Name),
		attr.Always(nftaTableUserData, &userData),
		attr.Always(nftaTableOwner, &t.owner),
		attr.Always(unix.NFTA_TABLE_FLAGS, &flags),
	}.Read(m.attrs)
	info, _ := userdata.ParseTable(userData) // another program's table may have another format
	t.ours, t.comment = info.Ours, info.Comment
	t.dormant, t.persist = flags&unix.NFT_TABLE_F_DORMANT != 0, flags&tableFlagPersist != 0
	return t, err
}

// ruleInfo is what is read of a rule.
type ruleInfo struct {
	chain  string
	handle uint64
	info   userdata.RuleInfo
	writes []compile.Write
}

// decodeRule decodes a NEWRULE. Of the expressions it reads only what the rule writes
// into maps, because the fingerprint in the userdata identifies them. Userdata that
// cannot be parsed belongs to a rule that weft did not create.
func decodeRule(m reply) (ruleInfo, error) {
	var r ruleInfo
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_RULE_CHAIN:
			r.chain = a.Text()
		case unix.NFTA_RULE_HANDLE:
			r.handle = a.Uint64BE()
		case unix.NFTA_RULE_USERDATA:
			if info, err := userdata.ParseRule(a.Bytes()); err == nil {
				r.info = info
			}
		case unix.NFTA_RULE_EXPRESSIONS:
			// Few rules write into maps. This test is cheaper than parsing.
			if !bytes.Contains(a.Bytes(), []byte("dynset\x00")) {
				continue
			}
			var err error
			if r.writes, err = compile.ParseWrites(a.Bytes()); err != nil {
				return r, fmt.Errorf("handle %d of chain %s: %w: %w", r.handle, r.chain, ErrMalformed, err)
			}
		}
	}
	return r, a.Err()
}

// decodeHandle returns the handle of an echoed NEWRULE.
func decodeHandle(payload []byte) (uint64, error) {
	m, err := parseReply(payload)
	if err != nil {
		return 0, err
	}
	r, ok := attr.Find(m.attrs, unix.NFTA_RULE_HANDLE)
	if !ok {
		return 0, ErrMalformed
	}
	n := r.Uint64BE()
	return n, r.Err()
}
