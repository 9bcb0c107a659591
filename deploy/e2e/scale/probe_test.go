package scale

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// samples is the number of probed Services, including the first and the last.
const samples = 20

// answering waits until every sample answers from the node.
func answering(ctx context.Context, n *lab.Node, s size, patience time.Duration) error {
	for i := range min(samples, s.services) {
		service := i
		if s.services > samples {
			service = i * (s.services - 1) / (samples - 1)
		}
		if err := lab.Within(ctx, patience, func() error { return ask(ctx, n, clusterIP(service)) }); err != nil {
			return err
		}
	}
	return nil
}

func ask(ctx context.Context, n *lab.Node, ip netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := n.Dial(ctx, "tcp", netip.AddrPortFrom(ip, port).String())
	if err != nil {
		return fmt.Errorf("ask %s: %w", ip, err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetReadDeadline(deadline)
	_ = conn.(*net.TCPConn).SetLinger(0) // no TIME_WAIT
	b, err := io.ReadAll(conn)
	if err != nil {
		return fmt.Errorf("ask %s: %w", ip, err)
	}
	if from, err := netip.ParseAddrPort(string(b)); err != nil || !endpointCIDR.Contains(from.Addr()) {
		return fmt.Errorf("ask %s: answered by %q, want an endpoint", ip, b)
	}
	return nil
}
