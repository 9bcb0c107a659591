package expr

import google "github.com/google/nftables/expr"

// FlowOffload is the kernel's flow_offload expression, which puts a connection
// into a flowtable. google/nftables leaves out the NUL that nft(8) sends.
type FlowOffload struct{ Flowtable string }

// table is Expr's.
func (e *FlowOffload) table() table {
	return table{"flow_offload", []attribute{{google.NFTNL_EXPR_FLOW_TABLE_NAME, &e.Flowtable, always}}}
}

// String is Expr's.
func (e *FlowOffload) String() string { return "flow_offload flowtable " + e.Flowtable }
