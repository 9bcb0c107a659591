package cyclonus

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// connections are TCP connections, one for each allowed flow to the first port, until it is denied.
type connections struct {
	network *network
	open    map[flow]net.Conn
	// connections cut and kept by policy changes
	cut, kept int
}

// differ sends a byte along every connection, which must be answered exactly if its flow is allowed. It
// closes denied connections, and opens missing allowed ones.
func (c *connections) differ(ctx context.Context, want map[flow]bool) []string {
	var mu sync.Mutex
	var wrong []string
	report := func(f flow, text string) {
		mu.Lock()
		defer mu.Unlock()
		delete(c.open, f)
		if allowed, known := want[f]; known && !allowed {
			c.cut++
		}
		if text != "" {
			wrong = append(wrong, fmt.Sprintf("%s > %s %s: %s", f.from, f.to, f.Flow, text))
		}
	}
	var asking sync.WaitGroup
	for f, conn := range maps.Clone(c.open) {
		asking.Go(func() {
			allowed, known := want[f]
			wait := silence
			if allowed {
				// A busy machine may need seconds for all connections.
				wait = 15 * time.Second
			}
			err := exchange(conn, wait)
			switch {
			case allowed && err != nil:
				report(f, fmt.Sprintf("a connection that is allowed is cut: %v", err))
			case known && !allowed && err == nil:
				report(f, "a connection that is not allowed is not cut")
			case !allowed:
				report(f, "")
			default:
				return
			}
			conn.Close()
		})
	}
	asking.Wait()
	c.kept += len(c.open)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	open := maps.Clone(c.open)
	for f, allowed := range want {
		if _, ok := open[f]; ok || !allowed || f.Protocol != corev1.ProtocolTCP || f.Port != int32(ports[0]) {
			continue
		}
		asking.Go(func() {
			conn, err := c.network.agents[f.from].pod.Dial(ctx, "tcp", netip.AddrPortFrom(f.To, ports[0]).String())
			if err != nil {
				report(f, err.Error())
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			mu.Lock()
			defer mu.Unlock()
			c.open[f] = conn
		})
	}
	asking.Wait()
	slices.Sort(wrong)
	return wrong
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

func (c *connections) close() {
	for _, conn := range c.open {
		conn.Close()
	}
}
