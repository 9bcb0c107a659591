package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// The ports that a pod's servers listen on.
const (
	serverTCP = 8080
	serverUDP = 5353
)

// Serve is the server of a pod. Over TCP it says its name and the client's
// address in a line, and then returns every byte that it gets; over UDP it
// answers each packet with its name, the client's address and the packet. It
// listens on every address of the namespace until ctx ends, and prints a line
// once it does.
func Serve(ctx context.Context, name string, stdout io.Writer) error {
	tcp, err := net.Listen("tcp", fmt.Sprintf(":%d", serverTCP))
	if err != nil {
		return fmt.Errorf("serve tcp: %w", err)
	}
	udp, err := listenUDP(serverUDP)
	if err != nil {
		return errors.Join(err, tcp.Close())
	}
	closers := []io.Closer{tcp}
	for _, conn := range udp {
		closers = append(closers, conn)
	}
	stop := context.AfterFunc(ctx, func() {
		for _, c := range closers {
			_ = c.Close()
		}
	})
	defer stop()
	fmt.Fprintf(stdout, "%s serves\n", name)

	var wg sync.WaitGroup
	wg.Go(func() { serveTCP(ctx, name, tcp) })
	for _, conn := range udp {
		wg.Go(func() { serveUDP(name, conn) })
	}
	wg.Wait()
	return nil
}

// listenUDP returns a socket for each address of the namespace. One socket for
// all of them would answer from the address that the route back prefers, which
// need not be the one that was asked.
func listenUDP(port uint16) ([]*net.UDPConn, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("serve udp: %w", err)
	}
	var out []*net.UDPConn
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || prefix.Addr().IsLinkLocalUnicast() {
			continue
		}
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(prefix.Addr(), port)))
		if err != nil {
			return nil, fmt.Errorf("serve udp: %w", err)
		}
		out = append(out, conn)
	}
	return out, nil
}

func serveTCP(ctx context.Context, name string, l net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer func() { _ = conn.Close() }()
			if _, err := fmt.Fprintln(conn, greeting(name, conn.RemoteAddr())); err == nil {
				_, _ = io.Copy(conn, conn)
			}
		})
	}
}

func serveUDP(name string, conn *net.UDPConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Such as "connection refused" by an earlier client's host.
			continue
		}
		_, _ = conn.WriteToUDPAddrPort(fmt.Appendf(nil, "%s %s", greeting(name, net.UDPAddrFromAddrPort(from)), buf[:n]), from)
	}
}

// greeting is what a server says of itself and of its client.
func greeting(name string, client net.Addr) string {
	return name + " " + client.String()
}

// answer is a greeting as the client reads it.
type answer struct {
	pod  string
	seen netip.AddrPort
	rest string
}

// parseAnswer reads a greeting and what follows it.
func parseAnswer(text string) (answer, error) {
	fields := strings.SplitN(strings.TrimSuffix(text, "\n"), " ", 3)
	if len(fields) < 2 {
		return answer{}, fmt.Errorf("read answer: %q is not a greeting", text)
	}
	seen, err := netip.ParseAddrPort(fields[1])
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	a := answer{pod: fields[0], seen: netip.AddrPortFrom(seen.Addr().Unmap(), seen.Port())}
	if len(fields) == 3 {
		a.rest = fields[2]
	}
	return a, nil
}

// readGreeting reads the first line of a TCP connection.
func readGreeting(r *bufio.Reader) (answer, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	return parseAnswer(line)
}
