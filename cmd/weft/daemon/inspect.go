package daemon

import (
	"slices"

	"github.com/weft-proxy/weft/cmd/weft/sockdiag"
	"github.com/weft-proxy/weft/nft/lint"
)

const kubeletPort = 10250

// needs has SSH and the kubelet if they listen, and the API server if there is a kubelet.
func needs() []lint.Need {
	// Without sock_diag fewer needs are known.
	listens, _ := sockdiag.Listening()
	return slices.DeleteFunc(slices.Clone(lint.NodeNeeds), func(n lint.Need) bool {
		return !n.Client && !listens[n.Port] || n.Client && !listens[kubeletPort]
	})
}
