package lab

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
)

// An answer is one line: the pod's name, the port, the client's address, and the question. A TCP server
// greets with an empty question.

func (p *Pod) answer(port uint16, client netip.AddrPort, question string) string {
	return fmt.Sprintf("%s %d %s %q\n", p.Name(), port, unmap(client), question)
}

func (p *Pod) serveTCP(l net.Listener, port uint16) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if !p.track(conn) {
			return
		}
		go p.talk(conn, port)
	}
}

// track closes the socket and returns false if the pod has stopped.
func (p *Pod) track(c io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		c.Close()
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Pod) talk(conn net.Conn, port uint16) {
	defer func() {
		conn.Close()
		p.mu.Lock()
		delete(p.open, conn)
		p.mu.Unlock()
	}()
	client := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	if _, err := conn.Write([]byte(p.answer(port, client, ""))); err != nil {
		return
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if _, err := conn.Write([]byte(p.answer(port, client, lines.Text()))); err != nil {
			return
		}
	}
}

func (p *Pod) serveUDP(conn *net.UDPConn, port uint16) {
	buf := make([]byte, 2048)
	for {
		n, client, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		// This client may be gone.
		_, _ = conn.WriteToUDPAddrPort([]byte(p.answer(port, client, string(buf[:n]))), client)
	}
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
