package scale

import (
	"context"
	"errors"
	"sync"
	"time"
)

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// parallel calls all functions, and returns the first error of each worker, which ends it.
func parallel(workers int, work []func() error) error {
	var wg sync.WaitGroup
	queue, errs := make(chan func() error), make([]error, workers)
	for i := range workers {
		wg.Go(func() {
			for f := range queue {
				if errs[i] == nil {
					errs[i] = f()
				}
			}
		})
	}
	for _, f := range work {
		queue <- f
	}
	close(queue)
	wg.Wait()
	return errors.Join(errs...)
}
