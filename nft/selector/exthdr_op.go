package selector

// ExthdrOp is the kernel's number for the header that an extension belongs to (enum
// nft_exthdr_op). Its values are not those of syntax.ExthdrKind.
type ExthdrOp uint32

// The places of extensions.
const (
	ExthdrIPv6 ExthdrOp = 0
	ExthdrTCP  ExthdrOp = 1
	ExthdrIPv4 ExthdrOp = 2
	// ExthdrSCTP is a chunk of SCTP (kernel 5.14).
	ExthdrSCTP ExthdrOp = 3
)
