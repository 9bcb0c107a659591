package expr

import (
	"fmt"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/selector"
)

// Socket is the kernel's socket expression. google/nftables marshals its
// attributes in another order than nft(8).
type Socket struct{ Key, Register, Level uint32 }

// table is Expr's.
func (e *Socket) table() table {
	return table{"socket", []attribute{
		{google.NFTA_SOCKET_KEY, &e.Key, always},
		{google.NFTA_SOCKET_DREG, &e.Register, always},
		{google.NFTA_SOCKET_LEVEL, &e.Level, always},
	}}
}

// String is Expr's.
func (e *Socket) String() string {
	return fmt.Sprintf("socket load %s => reg %d", selector.HostDumpName(selector.SocketKeys[:], e.Key), e.Register)
}
