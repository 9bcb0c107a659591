package pods

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	errNoEvent    = errors.New("there is none")
	errStillThere = errors.New("still there")
)

// stopWaiting is a permanent error.
type stopWaiting struct{ error }

// eventually retries f for patience, and returns its last error.
func eventually(ctx context.Context, patience time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil || errors.As(err, new(stopWaiting)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", patience, err)
		case <-tick.C:
		}
	}
}
