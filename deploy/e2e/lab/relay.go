package lab

import (
	"context"
	"fmt"
	"io"
	"net"
)

// Relay listens at an address of the namespace, and connects each client to another address as seen from
// a namespace, until the listener is closed.
func (n *Namespace) Relay(at string, from *Namespace, to string) (net.Listener, error) {
	var listener net.Listener
	err := n.Do(func() (err error) {
		listener, err = net.Listen("tcp", at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("relay to %s: %w", to, err)
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			go forward(client, from, to)
		}
	}()
	return listener, nil
}

func forward(client net.Conn, from *Namespace, to string) {
	defer client.Close()
	server, err := from.Dial(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, client) // the other copy ends with it
	}()
	_, _ = io.Copy(client, server) // one of the two has closed
}
