package lab

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Answer is the answer of a pod's server.
type Answer struct {
	Pod      string
	Port     uint16         // that the server listens on
	Client   netip.AddrPort // as the server saw it
	Question string
}

// Conversation is a TCP connection, or a UDP socket with one remote address. It is not safe for
// concurrent use.
type Conversation struct {
	conn net.Conn
	read *bufio.Reader
	// First is the greeting of a TCP server.
	First Answer
}

// Open starts a conversation from the namespace. network is tcp or udp; port is the source port, or 0
// for any. Opening UDP sends no packet. ctx bounds the TCP handshake; a refusal wraps
// syscall.ECONNREFUSED.
func (n *Namespace) Open(ctx context.Context, network string, to netip.AddrPort, port uint16) (*Conversation, error) {
	d := net.Dialer{Control: n.control}
	if port != 0 {
		switch network {
		case "tcp":
			d.LocalAddr = &net.TCPAddr{Port: int(port)}
		default:
			d.LocalAddr = &net.UDPAddr{Port: int(port)}
		}
	}
	conn, err := d.DialContext(ctx, network, to.String())
	if err != nil {
		return nil, err
	}
	c := &Conversation{conn: conn, read: bufio.NewReader(conn)}
	if network == "tcp" {
		if c.First, err = c.listen(ctx); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Ask sends one line and waits for its answer until ctx ends. It skips late answers to earlier
// questions. On UDP a question is one packet, and a lost packet is an error.
func (c *Conversation) Ask(ctx context.Context, question string) (Answer, error) {
	text := question
	if c.conn.LocalAddr().Network() == "tcp" {
		text += "\n"
	}
	if _, err := c.conn.Write([]byte(text)); err != nil {
		return Answer{}, err
	}
	for {
		a, err := c.listen(ctx)
		if err != nil || a.Question == question {
			return a, err
		}
	}
}

func (c *Conversation) listen(ctx context.Context) (Answer, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(10 * time.Second)
	}
	if err := c.conn.SetReadDeadline(deadline); err != nil {
		return Answer{}, err
	}
	line, err := c.read.ReadString('\n')
	if err != nil {
		return Answer{}, err
	}
	return parseAnswer(line)
}

func parseAnswer(line string) (Answer, error) {
	var a Answer
	var client, question string
	if _, err := fmt.Sscanf(line, "%s %d %s %q\n", &a.Pod, &a.Port, &client, &question); err != nil {
		return a, fmt.Errorf("parse answer %q: %w", line, err)
	}
	var err error
	if a.Client, err = netip.ParseAddrPort(client); err != nil {
		return a, fmt.Errorf("parse answer %q: %w", line, err)
	}
	a.Question = question
	return a, nil
}

// Resent is the number of retransmitted TCP segments. Right after Open it counts lost first packets,
// independently of a slow machine.
func (c *Conversation) Resent() (int, error) {
	tcp, ok := c.conn.(*net.TCPConn)
	if !ok {
		return 0, nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("look at connection: %w", err)
	}
	var info *unix.TCPInfo
	if ctl := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); ctl != nil {
		err = ctl
	}
	if err != nil {
		return 0, fmt.Errorf("look at connection: %w", err)
	}
	return int(info.Total_retrans), nil
}

// Close ends the conversation.
func (c *Conversation) Close() error { return c.conn.Close() }

// Ask asks one question in a new conversation, within the timeout.
func (n *Namespace) Ask(ctx context.Context, network string, to netip.AddrPort, timeout time.Duration) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := n.Open(ctx, network, to, 0)
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s %s from %s: %w", network, to, n.name, err)
	}
	defer c.Close()
	a, err := c.Ask(ctx, "q"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s %s from %s: %w", network, to, n.name, err)
	}
	return a, nil
}
