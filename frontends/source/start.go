package source

import (
	"context"
	"math/rand/v2"
	"time"
)

// StartSpread is the time within which a restarted process begins its first lists, at random. A node without
// rules begins at once.
const StartSpread = 2 * time.Second

// awaitStart returns false if ctx ends.
func (k *Kube) awaitStart(ctx context.Context) bool {
	if k.restarted == nil || !k.restarted(ctx) {
		return ctx.Err() == nil
	}
	pause := rand.N(StartSpread) //nolint:gosec // not a secret
	k.log.Debug("the rules of an earlier process are in force: waiting before the first lists", "wait", pause)
	return sleep(ctx, pause)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
