package render

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-proxy/weft/conntrack"
)

// conversation is a TCP connection of which both ends are at hand.
type conversation struct{ client, server net.Conn }

// converse opens two connections of a pod to a port of another one, or of node 0, in each family.
func (l *lab) converse(from, to int, port uint16) (first, second []conversation) {
	l.t.Helper()
	for f := range families {
		ns, at := l.node, netip.AddrPortFrom(nodeAddrs[f], port).String()
		if to != 0 {
			ns, at = l.pods[to], netip.AddrPortFrom(labAddr(f, to), port).String()
		}
		var c [2]conversation
		var listener net.Listener
		err := ns.Do(func() (err error) { listener, err = net.Listen("tcp", at); return err })
		for i := range c {
			if err == nil {
				err = l.pods[from].Do(func() (err error) { c[i].client, err = net.DialTimeout("tcp", at, time.Second); return err })
			}
			if err == nil {
				c[i].server, err = listener.Accept()
			}
			if err != nil {
				l.t.Fatal(err)
			}
			l.t.Cleanup(func() { c[i].client.Close(); c[i].server.Close() })
		}
		listener.Close()
		first, second = append(first, c[0]), append(second, c[1])
	}
	return first, second
}

// says reports whether a byte of one end gets to the other.
func says(from, to net.Conn) bool {
	b := []byte{1}
	if _, err := from.Write(b); err != nil {
		return false
	}
	_ = to.SetReadDeadline(time.Now().Add(2 * patience))
	_, err := to.Read(b)
	return err == nil
}

// forget makes conntrack of the node forget all connections.
func (l *lab) forget() {
	l.t.Helper()
	err := l.node.Do(func() error {
		c, err := conntrack.Open()
		if err != nil {
			return err
		}
		var all []conntrack.Entry
		err = c.List(context.Background(), conntrack.SelectAll(), func(e *conntrack.Entry) error { all = append(all, *e); return nil })
		if err == nil {
			_, err = c.Delete(context.Background(), all)
		}
		return errors.Join(err, c.Close())
	})
	must(l.t, err)
}

// TestConnectionsThatConntrackForgot: a TCP connection that is denied does not go on, whichever
// end speaks first. One that is allowed does once its client speaks, if the ports say which end
// that is.
func TestConnectionsThatConntrackForgot(t *testing.T) {
	const client, server, node = 1, 2, 0
	tests := []struct {
		name   string
		server int
		port   uint16
		// set changes the policies after the connection was opened.
		set func(*lab)
		// byServer and byClient say whether a connection goes on if that end speaks first.
		byServer, byClient bool
	}{
		{"ingress is denied", server, 8081, func(l *lab) { l.labPod(server, "lab/none", "") }, false, false},
		{"egress is denied", server, 8081, func(l *lab) { l.labPod(client, "", "lab/none") }, false, false},
		{"denied at a port that a client may have", server, 50051, func(l *lab) { l.labPod(server, "lab/none", "") }, false, false},
		{"both are isolated, and the connection is denied", server, 8081, func(l *lab) {
			l.labPod(client, "lab/none", "lab/none")
			l.labPod(server, "lab/none", "lab/none")
		}, false, false},
		{"allowed by ingress", server, 8081, func(l *lab) { l.labPod(server, "lab/pair", "") }, false, true},
		{"allowed by egress", server, 8081, func(l *lab) { l.labPod(client, "", "lab/pair") }, false, true},
		{"allowed at a port that a client may have", server, 50051, func(l *lab) { l.labPod(server, "lab/pair", "") }, false, false},
		{"allowed in both directions", server, 8081, func(l *lab) {
			l.labPod(client, "lab/pair", "lab/pair")
			l.labPod(server, "lab/pair", "lab/pair")
		}, false, true},
		{"both are isolated, and the connection alone is allowed", server, 8081, func(l *lab) {
			l.labPod(client, "lab/none", "lab/port")
			l.labPod(server, "lab/port", "lab/none")
		}, false, true},
		{"egress to the node is denied", node, 8081, func(l *lab) { l.labPod(client, "", "lab/none") }, false, false},
		{"egress to the node is allowed", node, 8081, func(l *lab) { l.labPod(client, "lab/none", "lab/all") }, true, true},
		{"ingress alone is isolated, and the node is the server", node, 50051, func(l *lab) { l.labPod(client, "lab/none", "") }, true, true},
		{"neither has a policy", server, 50051, func(l *lab) { l.labPod(3, "lab/none", "lab/none") }, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			pair := l.podsSet("pair", client, server)
			l.policy("lab/none", nil, nil)
			l.policy("lab/all", everyone, everyone)
			l.policy("lab/pair", rulesTo(pair), rulesTo(pair))
			l.policy("lab/port", rulesTo(pair, "tcp 8081"), rulesTo(pair, "tcp 8081"))
			l.apply()
			first, second := l.converse(client, test.server, test.port)
			test.set(l)
			l.apply()
			l.forget()
			for f := range families {
				got := says(first[f].server, first[f].client)
				if test.server == node {
					// It reaches its pods, which may not answer.
					got = got && says(first[f].client, first[f].server)
				}
				if got != test.byServer {
					t.Errorf("%s: the server speaks first, and is heard: %v, want %v", families[f].table, got, test.byServer)
				}
				if got := says(second[f].client, second[f].server) && says(second[f].server, second[f].client); got != test.byClient {
					t.Errorf("%s: an answer after the client has spoken first: %v, want %v", families[f].table, got, test.byClient)
				}
			}
		})
	}
}
