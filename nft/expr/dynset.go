package expr

import (
	"time"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Dynset changes an element. google/nftables always sends flags, and does not mark nested
// attributes.
type Dynset struct {
	// NFT_DYNSET_OP_ADD, UPDATE or DELETE
	Op uint32
	// Data is 0 in sets.
	Key, Data uint32
	SetName   string
	// anonymous set of the rule, from 1, or 0 for a named set; see Encoded.At
	SetID uint32
	// sent in whole milliseconds
	Timeout time.Duration
	Exprs   []Expr
}

const (
	DynsetDelete = 2
)

func (e *Dynset) table(t *table) {
	flags := uint32(google.NFT_DYNSET_F_EXPR)
	t.name, t.format = "dynset", "dynset %[3]s reg_key %[1]d set %[5]s"
	t.add(unix.NFTA_DYNSET_SREG_KEY, &e.Key)
	t.addIf(e.Data != 0, unix.NFTA_DYNSET_SREG_DATA, &e.Data, " sreg_data %d")
	t.addWord(unix.NFTA_DYNSET_OP, &e.Op, func(op uint32) string { return wordAt(op, "add", "update", "delete") })
	t.addIf(e.Timeout != 0, unix.NFTA_DYNSET_TIMEOUT, &e.Timeout, " timeout %dms")
	t.add(unix.NFTA_DYNSET_SET_NAME, &e.SetName)
	t.add(unix.NFTA_DYNSET_SET_ID, (*setID)(&e.SetID))
	t.addIf(len(e.Exprs) == 1, unix.NFTA_DYNSET_EXPR, &e.Exprs, "%s")
	t.addIf(len(e.Exprs) > 1, google.NFTA_DYNSET_EXPRESSIONS, &e.Exprs, "%s")
	t.addIf(len(e.Exprs) > 1, unix.NFTA_DYNSET_FLAGS, &flags, "")
}
