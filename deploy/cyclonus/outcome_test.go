package cyclonus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// unlimitErrors makes the nodes send an ICMP error for each rejected packet, past the kernel's rate
// limit.
func (w *world) unlimitErrors(t *testing.T) {
	t.Helper()
	for _, node := range w.lab.Nodes {
		for _, limit := range []string{"net/ipv4/icmp_ratelimit", "net/ipv6/icmp/ratelimit"} {
			must(t, node.Sysctl(limit, "0"))
		}
	}
}

type outcome string

const (
	answered outcome = "an answer"
	refused  outcome = "a rejection"
	silent   outcome = "nothing"
)

// eventually asks by TCP and UDP until the port of all addresses has the outcome, and returns a line for
// each other one.
func eventually(ctx context.Context, from *lab.Namespace, to []netip.Addr, port uint16, want outcome) []string {
	wait := patience
	switch want {
	case silent:
		wait = silence
	case refused:
		// An error during connect is noticed only at the kernel's retransmission.
		wait = 2 * time.Second
	}
	for deadline := time.Now().Add(bound); ; {
		var mu sync.Mutex
		var wrong []string
		var asking sync.WaitGroup
		for _, network := range []string{"tcp", "udp"} {
			for _, addr := range to {
				asking.Go(func() {
					at := netip.AddrPortFrom(addr, port)
					if got, err := ask(ctx, from, network, at, wait); got != want {
						mu.Lock()
						defer mu.Unlock()
						wrong = append(wrong, fmt.Sprintf("%s %s: %s (%v), want %s", network, at, got, err, want))
					}
				})
			}
		}
		asking.Wait()
		if len(wrong) == 0 || time.Now().After(deadline) {
			return wrong
		}
	}
}

// ask opens a connection or a UDP socket, and asks once.
func ask(ctx context.Context, from *lab.Namespace, network string, to netip.AddrPort, wait time.Duration) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	conn, err := from.Dial(ctx, network, to.String())
	if err == nil {
		defer conn.Close()
		err = exchange(conn, wait)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	switch {
	case err == nil:
		return answered, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused, err
	default:
		return silent, err
	}
}

func exchange(conn net.Conn, wait time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, 1)); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 8))
	return err
}
