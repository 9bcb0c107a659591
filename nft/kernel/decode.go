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

// Unparseable userdata means that weft did not create the table.
func decodeTable(m reply) (TableInfo, error) {
	t := TableInfo{ID: nft.TableID{Family: m.family}}
	var flags uint32
	var userData []byte
	err := attr.Fields{
		attr.Always(unix.NFTA_TABLE_NAME, &t.ID.Name),
		attr.Always(nftaTableUserData, &userData),
		attr.Always(nftaTableOwner, &t.Owner),
		attr.Always(unix.NFTA_TABLE_FLAGS, &flags),
	}.Read(m.attrs)
	info, _ := userdata.ParseTable(userData)
	t.Ours, t.Comment = info.Ours, info.Comment
	t.Dormant, t.Persist = flags&unix.NFT_TABLE_F_DORMANT != 0, flags&tableFlagPersist != 0
	return t, err
}

type ruleInfo struct {
	chain  string
	handle uint64
	info   userdata.RuleInfo
	writes []compile.Write
}

// readRule returns exprs that alias the message. Unparseable userdata is foreign.
func readRule(m reply) (r ruleInfo, exprs []byte, err error) {
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_RULE_CHAIN:
			r.chain = a.Text()
		case unix.NFTA_RULE_HANDLE:
			r.handle = a.Uint64BE()
		case unix.NFTA_RULE_USERDATA:
			r.info, _ = userdata.ParseRule(a.Bytes())
		case unix.NFTA_RULE_EXPRESSIONS:
			exprs = a.Bytes()
		}
	}
	return r, exprs, a.Err()
}

// decodeRule parses only writes into maps; the fingerprint identifies the other expressions.
func decodeRule(m reply) (ruleInfo, error) {
	r, exprs, err := readRule(m)
	if err != nil || !bytes.Contains(exprs, []byte("dynset\x00")) {
		return r, err
	}
	if r.writes, err = compile.ParseWrites(exprs); err != nil {
		return r, fmt.Errorf("handle %d of chain %s: %w: %w", r.handle, r.chain, ErrMalformed, err)
	}
	return r, nil
}

func decodeHandle(payload []byte) (uint64, error) {
	m, err := parseReply(payload)
	if err != nil {
		return 0, err
	}
	r, _, err := readRule(m)
	if err == nil && r.handle == 0 {
		err = ErrMalformed
	}
	return r.handle, err
}
