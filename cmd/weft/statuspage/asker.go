package statuspage

import (
	"fmt"
	"net"
	"net/http"

	"github.com/weft-proxy/weft/cmd/weft/sockdiag"
)

// asker returns the user of the client, if the kernel knows the client's socket.
func asker(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if uid, err := sockdiag.User(r.RemoteAddr, local.String()); err == nil {
			return fmt.Sprintf("user %d", uid)
		}
	}
	return "a user who is not known"
}
