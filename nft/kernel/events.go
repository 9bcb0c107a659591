package kernel

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

type stream[T any] struct {
	sock *socket
	out  chan T
	// decode must copy from the datagram.
	decode func(datagram []byte) []T
	// overrun returns the event for dropped events, failed the last event.
	overrun func() T
	failed  func(error) T
}

// run closes the socket and the channel at its end.
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

func (s *stream[T]) emit(ctx context.Context, event T) bool {
	select {
	case s.out <- event:
		return true
	case <-ctx.Done():
		return false
	}
}
