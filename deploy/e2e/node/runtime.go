package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

const patience = 30 * time.Second

var errRuntimeEnded = errors.New("it ended")

// serve returns when the socket accepts connections, because the kubelet tries only once. stop ends the
// runtime; served then gets its result. The runtime outlives ctx, so that the kubelet ends before its
// containers.
func serve(ctx context.Context, r Runtime, socket string) (served <-chan error, stop context.CancelFunc, err error) {
	if err := os.RemoveAll(socket); err != nil {
		return nil, nil, fmt.Errorf("remove stale socket: %w", err)
	}
	ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	result := make(chan error, 1)
	go func() {
		err := r.Serve(ctx, socket)
		if err == nil && ctx.Err() == nil {
			err = errRuntimeEnded
		}
		result <- err
	}()
	if err := waitForSocket(socket, result); err != nil {
		stop()
		return nil, nil, fmt.Errorf("start container runtime: %w", err)
	}
	return result, stop, nil
}

func waitForSocket(socket string, result <-chan error) error {
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case ended := <-result:
			return ended
		case <-deadline:
			return fmt.Errorf("no answer within %s: %w", patience, err)
		case <-tick.C:
		}
	}
}
