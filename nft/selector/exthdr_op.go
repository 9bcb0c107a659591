package selector

// ExthdrOp is enum nft_exthdr_op, different from syntax.ExthdrKind.
type ExthdrOp uint32

// The headers of extensions.
const (
	ExthdrIPv6 ExthdrOp = 0
	ExthdrTCP  ExthdrOp = 1
	ExthdrIPv4 ExthdrOp = 2
	// kernel 5.14
	ExthdrSCTP ExthdrOp = 3
)
