package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
)

// The ports that a pod's servers listen on.
const (
	serverTCP = 8080
	serverUDP = 5353
)

// Serve is the server of a pod. Over TCP it sends its name and the client's address in a
// line, and then returns every byte that it gets; over UDP it answers each packet with its
// name, the client's address and the packet. It prints a line once it listens, and returns
// when ctx ends: the process must end then.
func Serve(ctx context.Context, name string, stdout io.Writer) error {
	tcp, err := net.Listen("tcp", fmt.Sprintf(":%d", serverTCP))
	if err != nil {
		return fmt.Errorf("serve tcp: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = tcp.Close() })()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{Port: serverUDP})
	if err != nil {
		return fmt.Errorf("serve udp: %w", err)
	}
	go serveUDP(name, udp)
	fmt.Fprintf(stdout, "%s serves\n", name)
	for {
		conn, err := tcp.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve tcp: %w", err)
		}
		go func() {
			defer func() { _ = conn.Close() }()
			if _, err := fmt.Fprintln(conn, greeting(name, conn.RemoteAddr())); err == nil {
				_, _ = io.Copy(conn, conn)
			}
		}()
	}
}

func serveUDP(name string, conn *net.UDPConn) {
	buf := make([]byte, 1500)
	for {
		// An error such as "connection refused" is about an earlier client.
		if n, from, err := conn.ReadFromUDPAddrPort(buf); err == nil {
			_, _ = conn.WriteToUDPAddrPort(fmt.Appendf(nil, "%s %s", greeting(name, net.UDPAddrFromAddrPort(from)), buf[:n]), from)
		}
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
	pod, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
	client, rest, _ := strings.Cut(rest, " ")
	seen, err := netip.ParseAddrPort(client)
	if err != nil {
		return answer{}, fmt.Errorf("read answer %q: %w", text, err)
	}
	return answer{pod: pod, seen: netip.AddrPortFrom(seen.Addr().Unmap(), seen.Port()), rest: rest}, nil
}

// readGreeting reads the first line of a TCP connection.
func readGreeting(r *bufio.Reader) (answer, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	return parseAnswer(line)
}
