package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
)

const (
	serverTCP = 8080
	serverUDP = 5353
)

// serve starts the pod's servers: TCP greets with a line of the pod's name and the client's address, and
// then echoes; UDP answers with both and the packet. They end with the cluster.
func (p *pod) serve() error {
	return p.Do(func() error {
		tcp, err := net.Listen("tcp", fmt.Sprintf(":%d", serverTCP))
		if err != nil {
			return err
		}
		p.sockets = append(p.sockets, tcp)
		udp, err := net.ListenUDP("udp", &net.UDPAddr{Port: serverUDP})
		if err != nil {
			return err
		}
		p.sockets = append(p.sockets, udp)
		go serveTCP(p.Name, tcp)
		go serveUDP(p.Name, udp)
		return nil
	})
}

func serveTCP(name string, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
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
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// Another error, such as "connection refused", is about an earlier client.
		if err == nil {
			_, _ = conn.WriteToUDPAddrPort(fmt.Appendf(nil, "%s %s", greeting(name, net.UDPAddrFromAddrPort(from)), buf[:n]), from)
		}
	}
}

func greeting(name string, client net.Addr) string {
	return name + " " + client.String()
}

type answer struct {
	pod  string
	seen netip.AddrPort
}

func parseAnswer(text string) (answer, error) {
	pod, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
	client, _, _ := strings.Cut(rest, " ")
	seen, err := netip.ParseAddrPort(client)
	if err != nil {
		return answer{}, fmt.Errorf("read answer %q: %w", text, err)
	}
	return answer{pod: pod, seen: netip.AddrPortFrom(seen.Addr().Unmap(), seen.Port())}, nil
}

func readGreeting(r *bufio.Reader) (answer, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	return parseAnswer(line)
}
