package doctor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
)

const maxRoutes = 1024

// checkRoutes accepts any route to a ClusterIP: weft's rules replace the address afterwards.
func checkRoutes(ctx context.Context, n *node, r *findings) error {
	var missing []string
	var reason syscall.Errno
	asked := make(map[netip.Addr]bool)
	state, err := n.services()
	if err != nil {
		return err
	}
	for _, s := range state.Services {
		for i := range s.Ports {
			for _, ip := range s.Ports[i].ClusterIPs {
				if !ip.IsValid() || asked[ip] || len(asked) == maxRoutes {
					continue
				}
				asked[ip] = true
				// Connecting a UDP socket looks up the route, and sends no packet.
				conn, err := new(net.Dialer).DialContext(ctx, "udp", netip.AddrPortFrom(ip, s.Ports[i].Number).String())
				switch {
				case err == nil:
					_ = conn.Close()
				case errors.As(err, &reason):
					missing = append(missing, ip.String())
				default:
					return err
				}
			}
		}
	}
	r.addSome(missing, "processes of this node get \""+reason.Error()+"\" for %d ClusterIPs: %s",
		"The node has neither a default route nor one to them, and the kernel looks for a route before weft's rules replace the address: host processes and pods with hostNetwork cannot connect, other pods can",
		"Add a default route, or one to the range of the ClusterIPs through any device that is up, such as `ip route add 10.96.0.0/12 dev eth0`")
	return nil
}
