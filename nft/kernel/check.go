package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Check has the kernel validate ops as Commit would send them, and changes
// nothing: the batch has no end, so the kernel aborts it once it has seen all of
// it, whatever it thinks of it (this is how "nft --check" works). No event is
// sent, the generation stays, and so do handles, counters and timeouts. The
// Handles of added rules are left alone.
//
// What the kernel does only when it carries a batch out can still fail, such as
// to find memory. Errors: those of Commit, but no ErrUnknownOutcome.
func (c *Conn) Check(ops []Op) error {
	if len(ops) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for range maxAttempts {
		e := &encoder{
			owner: c.owner, ackEnd: c.ackEnd, destroy: c.destroy, guard: c.guarded(), gen: c.gen, check: true,
			seq: c.seq, ours: c.owns, protected: c.protects, buf: c.keep[:0],
		}
		_, _, err := c.submit(e, ops)
		switch {
		case errors.Is(err, unix.ERESTART):
		case errors.Is(err, ErrClosed):
			return fmt.Errorf("check batch: %w", ErrClosed)
		case errors.Is(err, ErrUnknownOutcome):
			// There is no outcome to doubt: nothing was changed.
			return fmt.Errorf("check batch: no answer: %w", ErrMalformed)
		default:
			return err
		}
		if err := c.recheck(ops); err != nil {
			return err
		}
	}
	return fmt.Errorf("check batch: %w", ErrBusy)
}
