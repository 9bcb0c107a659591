package policy

import (
	"context"
	"sync"

	"github.com/weft-proxy/weft/aggregator/client"
)

// connection is the client for requests beside the publisher's. It connects at the first use.
type connection struct {
	socket string

	mu     sync.Mutex
	client *client.Client // nil until an aggregator has answered
}

// open does not wait for an aggregator.
func (c *connection) open(ctx context.Context) (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		dialled, err := client.Dial(ctx, client.Config{Socket: c.socket, Publisher: Publisher, DialTimeout: -1})
		if err != nil {
			return nil, err
		}
		c.client = dialled
	}
	return c.client, nil
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		_ = c.client.Close()
		c.client = nil
	}
}
