package kernel

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
)

const (
	// maxAttempts bounds how often a batch is sent again because another
	// writer was faster.
	maxAttempts = 16
	// keepBuffer is the greatest batch buffer that is used again.
	keepBuffer = 1 << 20
	// Room in the receive buffer, in bytes: a floor, what an error takes, and
	// what the echo of a rule takes beyond its own bytes. The kernel accounts
	// whole buffers.
	minReceive  = 256 << 10
	perError    = 1 << 10
	perEcho     = 4 << 10
	maxReceive  = 256 << 20
	sendReserve = 4 << 10
)

// Commit sends ops as one batch: all of it takes effect, or nothing. It fills
// in the Handles of added rules. Errors:
//
//   - *BatchError: rejected by the kernel, or not encodable; it names the op.
//     It wraps the errno, and ErrForeignTable, ErrNotClaimed or *OwnedError
//     where these apply.
//   - ErrTooLarge, ErrBusy, ErrDrift: not sent, or not taken; nothing of it
//     took effect.
//   - ErrUnknownOutcome: the socket failed after the batch went out.
//   - ErrClosed.
//
// Where tables are not owned, the batch carries the generation that the Conn
// last saw. When another writer was faster, Commit checks that its tables are
// still there and tries again, up to 16 times, with the generation of that
// check; a table that is gone is ErrDrift.
func (c *Conn) Commit(ops []Op) (Stats, error) {
	if len(ops) == 0 {
		return Stats{}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for attempt := range maxAttempts {
		stats, err := c.try(ops)
		stats.Retries = attempt
		if !errors.Is(err, unix.ERESTART) {
			return stats, err
		}
		if err := c.recheck(ops); err != nil {
			return stats, err
		}
	}
	return Stats{}, fmt.Errorf("commit batch: %w", ErrBusy)
}

// try sends a batch once.
func (c *Conn) try(ops []Op) (Stats, error) {
	e := &encoder{
		owner: c.owner, ackEnd: c.ackEnd, destroy: c.destroy, guard: c.guarded(), gen: c.gen,
		seq: c.seq, ours: c.owns, protected: c.protects, buf: c.keep[:0],
	}
	result, stats, err := c.submit(e, ops)
	if err != nil {
		return stats, err
	}
	return stats, c.committed(e, result)
}

// submit encodes a batch, sends it and returns what the kernel answered.
func (c *Conn) submit(e *encoder, ops []Op) (result, Stats, error) {
	if err := e.batch(ops); err != nil {
		return result{}, Stats{}, err
	}
	if cap(e.buf) <= keepBuffer {
		c.keep = e.buf
	}
	stats := Stats{Messages: len(e.messages), Bytes: len(e.buf), Elements: e.elements}
	receive := max(minReceive, len(e.messages)*perError)
	for _, w := range e.wanted {
		receive += e.messageLen(w.message) + perEcho
	}
	if err := c.sock.reserve(len(e.buf)+sendReserve, min(receive, maxReceive)); err != nil {
		return result{}, stats, fmt.Errorf("commit batch: %w", err)
	}
	if err := c.sock.drain(); err != nil {
		return result{}, stats, fmt.Errorf("commit batch: %w", err)
	}
	c.seq += uint32(len(e.messages))
	if err := c.sock.send(e.buf); err != nil {
		switch {
		case errors.Is(err, unix.EMSGSIZE):
			return result{}, stats, fmt.Errorf("commit batch of %d bytes: %w", len(e.buf), ErrTooLarge)
		case errors.Is(err, ErrClosed):
			return result{}, stats, fmt.Errorf("commit batch: %w", err)
		}
		return result{}, stats, fmt.Errorf("commit batch: %w: %w", ErrUnknownOutcome, err)
	}
	r, err := c.collect(e)
	if err == nil {
		err = r.failure(c, e, ops)
	}
	return r, stats, err
}

// messageLen returns the length of a message of the batch.
func (e *encoder) messageLen(i int) int {
	return e.messageEnd(i) - e.messages[i].offset
}

// messageEnd returns where a message of the batch ends.
func (e *encoder) messageEnd(i int) int {
	if i+1 < len(e.messages) {
		return e.messages[i+1].offset
	}
	return len(e.buf)
}

// result is what the kernel answered to a batch.
type result struct {
	acknowledged bool
	failures     []failure
	// handles are the echoed handles by message.
	handles map[int]uint64
}

// failure is the kernel's error about one message.
type failure struct {
	message int
	kernelError
}

// collect reads the answers to a batch. The kernel put all of them into the
// receive buffer before the batch was sent completely.
func (c *Conn) collect(e *encoder) (result, error) {
	var r result
	if len(e.wanted) > 0 {
		r.handles = make(map[int]uint64, len(e.wanted))
	}
	for {
		err := c.replies(func(h header, payload []byte) error {
			i := int(h.seq - e.seq)
			if i < 0 || i >= len(e.messages) {
				return nil // an answer to something older
			}
			switch h.typ {
			case unix.NLMSG_ERROR:
				ke, err := parseError(h.flags, payload)
				if err != nil {
					return err
				}
				if ke.errno == 0 {
					r.acknowledged = true
				} else {
					r.failures = append(r.failures, failure{message: i, kernelError: ke})
				}
			case msgType(unix.NFT_MSG_NEWRULE):
				handle, err := decodeHandle(payload)
				if err != nil {
					return err
				}
				if r.handles != nil {
					r.handles[i] = handle
				}
			}
			return nil
		})
		switch {
		case errors.Is(err, unix.ENOBUFS):
			continue // what did fit is still there
		case errors.Is(err, ErrClosed):
			return r, fmt.Errorf("commit batch: %w: %w", ErrUnknownOutcome, err)
		case err != nil && len(r.failures) == 0:
			return r, fmt.Errorf("commit batch: %w: %w", ErrUnknownOutcome, err)
		}
		break
	}
	if len(r.failures) == 0 && !r.acknowledged {
		return r, fmt.Errorf("commit batch: %w: no acknowledgement", ErrUnknownOutcome)
	}
	return r, nil
}

// failure returns the error of a rejected batch, nil where it was accepted. It
// is ERESTART alone where the generation was not the kernel's.
func (r *result) failure(c *Conn, e *encoder, ops []Op) error {
	if len(r.failures) == 0 {
		return nil
	}
	slices.SortStableFunc(r.failures, func(a, b failure) int { return a.message - b.message })
	first := r.failures[0]
	if first.message == 0 && first.errno == unix.ERESTART {
		return unix.ERESTART
	}
	culprit := e.batchError(first, ops)
	for _, f := range r.failures[1:] {
		culprit.Errors = append(culprit.Errors, e.batchError(f, ops))
	}
	c.explain(culprit)
	return culprit
}

// batchError maps an error of the kernel to the op, and the element where it
// points at one.
func (e *encoder) batchError(f failure, ops []Op) *BatchError {
	m := e.messages[f.message]
	be := &BatchError{Index: m.op, Element: -1, Errno: f.errno, ExtAck: f.kernelError.message}
	if m.op < 0 {
		return be
	}
	be.Op = ops[m.op]
	if m.element >= 0 && f.offset > 0 {
		if i := elementAt(e.buf[m.offset:e.messageEnd(f.message)], f.offset); i >= 0 {
			be.Element = m.element + i
		}
	}
	return be
}

// explain adds what can be found out about a rejection.
func (c *Conn) explain(be *BatchError) {
	switch {
	case be.Index < 0 && be.Errno == unix.EPERM:
		be.Err = ErrPermission
	case be.Op == nil:
	case be.Errno == unix.EPERM:
		be.Err = c.ownedError(be.Op.table())
	case be.Errno == unix.EEXIST:
		if add, ok := be.Op.(AddTable); ok {
			be.Err = c.whoseTable(add.Table)
		}
	}
}

// whoseTable says why a table could not be created.
func (c *Conn) whoseTable(id nft.TableID) error {
	t, err := c.table(id)
	switch {
	case err != nil:
		return err
	case !t.ours:
		return fmt.Errorf("table %s: %w", id, ErrForeignTable)
	default:
		return fmt.Errorf("table %s: %w", id, ErrNotClaimed)
	}
}

// committed records what a batch that was accepted changed.
func (c *Conn) committed(e *encoder, r result) error {
	c.gen++
	if c.gen == 0 {
		c.gen = 1 // the kernel skips 0
	}
	c.setTables(func(tables map[nft.TableID]bool) {
		for id, exists := range e.tables {
			if !exists {
				delete(tables, id)
			} else if _, known := tables[id]; !known || e.fresh[id] {
				tables[id] = c.owner
			}
		}
	})
	var lost []AddRule
	for _, w := range e.wanted {
		if n, ok := r.handles[w.message]; ok {
			w.rule.Handle.N = n
		} else {
			lost = append(lost, w.rule)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	if err := c.findHandles(lost); err != nil {
		return fmt.Errorf("commit batch: %w: read handles of new rules: %w", ErrUnknownOutcome, err)
	}
	return nil
}

// recheck finds out after a change by another writer whether the tables of a
// batch are still the connection's own, and takes the generation in which they are.
func (c *Conn) recheck(ops []Op) error {
	gen, err := c.generation()
	if err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	tables, err := c.listTables()
	if err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	marked := make(map[nft.TableID]bool, len(tables))
	for _, t := range tables {
		marked[t.id] = t.ours
	}
	seen := map[nft.TableID]bool{}
	for _, op := range ops {
		id := op.table()
		if seen[id] || !c.owns(id) {
			continue
		}
		seen[id] = true
		if _, isAdd := op.(AddTable); isAdd && !marked[id] {
			if _, foreign := marked[id]; !foreign {
				continue // it creates the table again
			}
		}
		if !marked[id] {
			return fmt.Errorf("commit batch: table %s: %w", id, ErrDrift)
		}
	}
	c.gen = gen
	return nil
}
