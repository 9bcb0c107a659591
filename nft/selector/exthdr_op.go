package selector

// ExthdrOp is the kernel's number of an extension's header (enum nft_exthdr_op). It differs from
// syntax.ExthdrKind.
type ExthdrOp uint32

// The headers of extensions.
const (
	ExthdrIPv6 ExthdrOp = 0
	ExthdrTCP  ExthdrOp = 1
	ExthdrIPv4 ExthdrOp = 2
	// chunk of SCTP (kernel 5.14)
	ExthdrSCTP ExthdrOp = 3
)
