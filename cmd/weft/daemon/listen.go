package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// portPatience is how long to wait for the port of a weft that is ending: the kernel
// closes the files of a killed process one after the other.
const portPatience = time.Second

// listeners are bound ports, by the flag that names the address.
type listeners map[string]net.Listener

// listen binds the addresses before anything runs, so that a wrong one is an error of
// the command. An address that is in use or does not exist yet is such an error only
// with hardFail; without it the server retries. The ports are closed when ctx ends.
func (s *httpSettings) listen(ctx context.Context) (listeners, error) {
	bound := make(listeners)
	ours := make(map[string]bool)
	for _, e := range s.endpoints() {
		if e.address == "" {
			continue
		}
		l, err := bind(ctx, e.address)
		// An address that the kernel refused, rather than the parser, may be free later.
		if err != nil && (s.hardFail || ours[e.address] || !errors.As(err, new(syscall.Errno))) {
			return nil, fmt.Errorf("--%s: %w (an empty address turns it off)", e.flag, err)
		}
		if err != nil {
			continue
		}
		ours[e.address] = true
		bound[e.flag] = l
		context.AfterFunc(ctx, func() { _ = l.Close() })
	}
	return bound, nil
}

// bind listens on a TCP address, and waits up to portPatience while it is in use.
func bind(ctx context.Context, address string) (net.Listener, error) {
	for deadline := time.Now().Add(portPatience); ; {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return l, err
		}
		if !cli.Pause(ctx, portPatience/20) {
			return nil, ctx.Err()
		}
	}
}
