package aggregator_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// lineConn is a connection that can be asked whether it lives.
type lineConn struct {
	net.Conn
	in *bufio.Reader
}

// dialTCP has a server echo on one address, and a client connect to another.
func (n *flowNode) dialTCP(t *testing.T, serve, to string) *lineConn {
	t.Helper()
	var l net.Listener
	n.do(t, func() (err error) {
		l, err = net.Listen("tcp4", serve)
		return err
	})
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	c := &lineConn{}
	n.do(t, func() (err error) {
		c.Conn, err = net.DialTimeout("tcp4", to, 5*time.Second)
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	c.in = bufio.NewReader(c)
	c.check(t)
	return c
}

func (c *lineConn) check(t *testing.T) {
	t.Helper()
	must(t, c.SetDeadline(time.Now().Add(3*time.Minute)))
	if _, err := io.WriteString(c, "alive\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := c.in.ReadString('\n'); err != nil || line != "alive\n" {
		t.Fatalf("connection answers %q, %v", line, err)
	}
}
