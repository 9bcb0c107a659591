package expr

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Dynset is the kernel's dynset expression. google/nftables always sends flags,
// and does not mark nested attributes as such.
type Dynset struct {
	// Op is NFT_DYNSET_OP_ADD, UPDATE or DELETE.
	Op uint32
	// Key and Data are register numbers; Data is 0 in sets.
	Key, Data uint32
	SetName   string
	// SetID is the number of an anonymous set, 0 for a named one.
	SetID   uint32
	Timeout time.Duration
	// Exprs are the stateful expressions of a new element.
	Exprs []Expr
}

// Attributes and numbers that golang.org/x/sys does not have (enum
// nft_dynset_attributes, nft_dynset_flags and nft_dynset_ops).
const (
	nftaDynsetExpressions = 10
	nftDynsetFlagExpr     = 2
	DynsetDelete          = 2
)

// table is Expr's.
func (e *Dynset) table() table {
	flags := uint32(nftDynsetFlagExpr)
	return table{"dynset", []attribute{
		{unix.NFTA_DYNSET_SREG_KEY, &e.Key, always},
		{unix.NFTA_DYNSET_SREG_DATA, &e.Data, e.Data != 0},
		{unix.NFTA_DYNSET_OP, &e.Op, always},
		{unix.NFTA_DYNSET_TIMEOUT, &e.Timeout, e.Timeout != 0},
		{unix.NFTA_DYNSET_SET_NAME, &e.SetName, always},
		{unix.NFTA_DYNSET_SET_ID, (*setID)(&e.SetID), always},
		{unix.NFTA_DYNSET_EXPR, &e.Exprs, len(e.Exprs) == 1},
		{nftaDynsetExpressions, &e.Exprs, len(e.Exprs) > 1},
		{unix.NFTA_DYNSET_FLAGS, &flags, len(e.Exprs) > 1},
	}}
}

// String is Expr's.
func (e *Dynset) String() string {
	op := [...]string{"add", "update", "delete"}
	s := fmt.Sprintf("dynset %s reg_key %d set %s", op[min(e.Op, 2)], e.Key, e.SetName) + dumpIf(" sreg_data %d", e.Data)
	if e.Timeout != 0 {
		s += fmt.Sprintf(" timeout %dms", e.Timeout.Milliseconds())
	}
	for _, x := range e.Exprs {
		s += " expr [ " + x.String() + " ]"
	}
	return s
}
