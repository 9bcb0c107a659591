package expr

import google "github.com/google/nftables/expr"

// FlowOffload puts a connection into a flowtable. google/nftables leaves out the NUL.
type FlowOffload struct{ Flowtable string }

func (e *FlowOffload) table(t *table) {
	t.name, t.format = "flow_offload", "flow_offload flowtable %[1]s"
	t.add(google.NFTNL_EXPR_FLOW_TABLE_NAME, &e.Flowtable)
}
