package expr

import (
	"strings"
)

// FlowOffload is the kernel's flow_offload expression, which puts a connection
// into a flowtable.
type FlowOffload struct {
	Flowtable string
}

// nftaFlowTableName is NFTA_FLOW_TABLE_NAME.
const nftaFlowTableName = 1

// Marshal is Expr's.
func (e *FlowOffload) Marshal(uint8) ([]byte, error) {
	return marshalNamed("flow_offload", appendText(nil, nftaFlowTableName, e.Flowtable)), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *FlowOffload) Unmarshal(data []byte) error {
	*e = FlowOffload{}
	return EachAttr(data, func(typ uint16, v []byte) error {
		if typ == nftaFlowTableName {
			e.Flowtable = strings.TrimRight(string(v), "\x00")
		}
		return nil
	})
}

// String is Expr's.
func (e *FlowOffload) String() string { return "flow_offload flowtable " + e.Flowtable }

func (e *FlowOffload) setID() *uint32 { return nil }
