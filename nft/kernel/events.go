package kernel

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// stream reads the events of a socket until ctx is done or the socket fails.
type stream[T any] struct {
	sock *socket
	out  chan T
	// decode returns the events of a datagram, without references to its buffer.
	decode func(datagram []byte) []T
	// overrun returns the event for dropped events; failed returns the last event, for a failed
	// socket.
	overrun func() T
	failed  func(error) T
}

// run is the stream's loop. At its end it closes the socket and the channel.
func (s *stream[T]) run(ctx context.Context) {
	defer close(s.out)
	stop := context.AfterFunc(ctx, func() { _ = s.sock.close() })
	defer func() {
		if stop() {
			_ = s.sock.close()
		}
	}()
	for {
		b, err := s.sock.recv(true)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unix.ENOBUFS):
			if !s.emit(ctx, s.overrun()) {
				return
			}
			continue
		case err != nil:
			s.emit(ctx, s.failed(err))
			return
		}
		for _, event := range s.decode(b) {
			if !s.emit(ctx, event) {
				return
			}
		}
	}
}

// emit returns false if ctx is done before the event is received.
func (s *stream[T]) emit(ctx context.Context, event T) bool {
	select {
	case s.out <- event:
		return true
	case <-ctx.Done():
		return false
	}
}
