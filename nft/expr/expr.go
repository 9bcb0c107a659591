package expr

import (
	"fmt"

	google "github.com/google/nftables/expr"
)

// Expr is one expression of a compiled rule, as the kernel runs it.
type Expr interface {
	// Marshal returns the content of NFTA_LIST_ELEM: the expression's name and
	// its attributes. Family is the table's.
	Marshal(family uint8) ([]byte, error)
	// String returns the expression in libnftnl's notation, as
	// `nft --debug=netlink` prints it, without the brackets.
	String() string
	// setID returns the address of the number of the anonymous set that the
	// expression uses, or nil for expressions that use none.
	setID() *uint32
}

// Library is an expression that github.com/google/nftables marshals as nft
// does.
type Library struct{ google.Any }

// Marshal is Expr's.
func (k Library) Marshal(family uint8) ([]byte, error) {
	b, err := google.Marshal(family, k.Any)
	if err != nil {
		return nil, fmt.Errorf("marshal %T: %w", k.Any, err)
	}
	return b, nil
}

// String is Expr's.
func (k Library) String() string { return DumpKernelExpr(k.Any) }

func (k Library) setID() *uint32 {
	if l, ok := k.Any.(*google.Lookup); ok {
		return &l.SetID
	}
	return nil
}
