package expr

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/selector"
)

// Socket loads a key of enum nft_socket_keys; Level is a cgroup's. google/nftables uses another
// order of attributes.
type Socket struct{ Key, Register, Level uint32 }

func (e *Socket) table(t *table) {
	t.name, t.format = "socket", "socket load %[1]s => reg %[2]d"
	t.addWord(google.NFTA_SOCKET_KEY, &e.Key, func(key uint32) string { return selector.SocketKeys.DumpName(key) })
	t.add(google.NFTA_SOCKET_DREG, &e.Register)
	t.add(google.NFTA_SOCKET_LEVEL, &e.Level)
}
