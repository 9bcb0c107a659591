package client

import "context"

// Pending is an unanswered update.
type Pending struct {
	done     chan struct{}
	revision uint64
	err      error
}

// Wait returns the outcome of the update. It may be called several times and concurrently. If ctx
// ends first, the update may still be committed.
func (p *Pending) Wait(ctx context.Context) (revision uint64, err error) {
	select {
	case <-p.done:
		return p.revision, p.err
	case <-ctx.Done():
		select {
		case <-p.done:
			return p.revision, p.err
		default:
			return 0, ctx.Err()
		}
	}
}

func newPending() *Pending { return &Pending{done: make(chan struct{})} }

func (p *Pending) answer(revision uint64, err error) *Pending {
	p.revision, p.err = revision, err
	close(p.done)
	return p
}
