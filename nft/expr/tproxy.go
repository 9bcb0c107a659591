package expr

import (
	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// TProxy redirects to a local socket. google/nftables always marshals a port, before the address.
type TProxy struct {
	// NFPROTO_IPV4 or NFPROTO_IPV6, 0 for both
	Family     uint32
	Addr, Port uint32
}

func (e *TProxy) table(t *table) {
	t.name = "tproxy"
	switch e.Family {
	case unix.NFPROTO_IPV4:
		t.format = "tproxy ip"
	case unix.NFPROTO_IPV6:
		t.format = "tproxy ip6"
	}
	t.add(google.NFTA_TPROXY_FAMILY, &e.Family)
	t.addIf(e.Addr != 0, google.NFTA_TPROXY_REG_ADDR, &e.Addr, " addr reg %d")
	t.addIf(e.Port != 0, google.NFTA_TPROXY_REG_PORT, &e.Port, " port reg %d")
}
