package daemon

import (
	"slices"

	"github.com/weft-proxy/weft/cmd/weft/sockdiag"
	"github.com/weft-proxy/weft/nft/lint"
)

// kubeletPort is the port of the kubelet, if it is not configured otherwise.
const kubeletPort = 10250

// needs returns what the node must be able to send and receive: SSH and the kubelet if something listens on
// their ports, and the API server if there is a kubelet.
func needs() []lint.Need {
	// Without sock_diag in the kernel fewer needs are known.
	listens, _ := sockdiag.Listening()
	return slices.DeleteFunc(slices.Clone(lint.NodeNeeds), func(n lint.Need) bool {
		return !n.Client && !listens[n.Port] || n.Client && !listens[kubeletPort]
	})
}
