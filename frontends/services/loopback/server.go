package loopback

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/weft-proxy/weft/frontends/services/listen"
)

// acceptPause is the wait after an error such as EMFILE.
const acceptPause = 100 * time.Millisecond

// server passes on the connections of one port.
type server struct {
	*Proxy
	at       listen.Address
	listener net.Listener
	// ends with Close, and with it the connections
	ctx  context.Context
	stop context.CancelFunc
}

func (p *Proxy) server(at listen.Address, l net.Listener) listen.Server {
	s := &server{Proxy: p, at: at, listener: l}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

func (s *server) Close() {
	s.stop()
	_ = s.listener.Close()
}

func (s *server) Serve() error {
	var connections sync.WaitGroup
	defer connections.Wait()
	defer s.stop()
	failing := false
	for {
		accepted, err := s.listener.Accept()
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				_ = accepted.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			if !failing {
				s.cfg.Logger.Error("a NodePort on a loopback address cannot accept connections: trying again", "service", s.at.Service.String(), "address", s.at.At, "error", err)
			}
			failing = true
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
			}
			continue
		}
		failing = false
		select {
		case s.room <- struct{}{}:
		case <-s.ctx.Done():
			_ = accepted.Close()
			return nil
		}
		connections.Go(func() {
			defer func() { <-s.room }()
			s.pass(accepted.(*net.TCPConn))
		})
	}
}

func (s *server) pass(client *net.TCPConn) {
	defer client.Close()
	to, ok := s.pick(s.at)
	if !ok {
		return
	}
	// The kernel says when a client on this node ends.
	_ = client.SetKeepAlive(false)
	ctx, cancel := context.WithTimeout(s.ctx, dialTimeout)
	backend, err := s.cfg.Dial(ctx, to)
	cancel()
	if err != nil {
		s.cfg.Logger.Debug("an endpoint of a NodePort on a loopback address does not answer", "service", s.at.Service.String(), "endpoint", to, "error", err)
		return
	}
	defer backend.Close()
	defer context.AfterFunc(s.ctx, func() { _, _ = client.Close(), backend.Close() })()
	var back sync.WaitGroup
	back.Go(func() { pass(client, backend) })
	pass(backend, client)
	back.Wait()
}

// pass copies until the end of src and passes this on. An error resets both connections.
func pass(dst, src *net.TCPConn) {
	_, err := io.Copy(dst, src)
	if err == nil {
		err = dst.CloseWrite()
	}
	if err != nil {
		for _, c := range []*net.TCPConn{dst, src} {
			_, _ = c.SetLinger(0), c.Close()
		}
	}
}
