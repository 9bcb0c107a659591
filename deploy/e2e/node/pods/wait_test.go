package pods

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Why something is waited for.
var (
	errNoEvent    = errors.New("there is none")
	errStillThere = errors.New("still there")
)

// stopWaiting is an error that will not go away.
type stopWaiting struct{ error }

// eventually calls f until it succeeds, and returns its last error if it does not within the time given.
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
