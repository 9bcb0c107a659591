package kernel

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
)

const (
	maxAttempts = 16
	// maxSpare limits the buffer to keep, in bytes.
	maxSpare = 1 << 20
	// Room for answers in the receive buffer, in bytes; the kernel accounts whole buffers.
	minReceive = 256 << 10
	perError   = 1 << 10
	perEcho    = 4 << 10
	maxReceive = 256 << 20
	// sendReserve is room in the send buffer beside the batch.
	sendReserve = 4 << 10
)

// Commit sends ops as one batch: it takes effect as a whole, or has no effect. It sets the Handles
// of added rules. Errors:
//
//   - *BatchError: the kernel rejected the batch, or an op could not be encoded. It names
//     the op, and wraps the errno, ErrForeignTable, ErrNotAdopted or *OwnedError if
//     they apply.
//   - ErrTooLarge, ErrBusy, ErrDrift, ErrClosed, and errors of the system calls: the batch had no effect.
//   - ErrUnknownOutcome: the socket failed after the send, or the batch took effect but the
//     handles of the new rules could not be read.
//
// If the generation is outdated, Commit checks that the batch's tables still exist and sends again,
// up to 16 times.
func (c *Conn) Commit(ops []Op) (Stats, error) {
	if len(ops) == 0 {
		return Stats{}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, r, stats, err := c.submit(ops, false)
	if err == nil {
		err = c.committed(e, r)
	}
	return stats, withContext("commit batch", err)
}

// Check lets the kernel validate ops without any change. The batch has no end, so the kernel drops
// it, as for "nft --check".
//
// A later Commit can still fail, for example for lack of memory. Errors are as for Commit, but a
// missing answer wraps ErrMalformed instead of ErrUnknownOutcome.
func (c *Conn) Check(ops []Op) error {
	if len(ops) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _, _, err := c.submit(ops, true)
	switch {
	case errors.Is(err, ErrClosed):
		err = ErrClosed
	case errors.Is(err, ErrUnknownOutcome):
		// the ruleset is unchanged
		err = fmt.Errorf("no answer: %w", ErrMalformed)
	}
	return withContext("check batch", err)
}

func withContext(what string, err error) error {
	if err == nil {
		return nil
	}
	if be := (*BatchError)(nil); errors.As(err, &be) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (c *Conn) submit(ops []Op, check bool) (*encoder, result, Stats, error) {
	var stats Stats
	for attempt := range maxAttempts {
		e := &encoder{
			features: c.features, guard: c.Unprotected(), gen: c.gen, check: check,
			buffer: buffer{seq: c.seq, buf: c.spare[:0]}, own: c.tables.lookup,
		}
		stats.Retries = attempt
		if err := e.batch(ops); err != nil {
			return e, result{}, stats, err
		}
		if cap(e.buf) <= maxSpare {
			c.spare = e.buf
		}
		stats.Messages, stats.Bytes, stats.Elements = len(e.messages), len(e.buf), e.elements
		r, err := c.send(e)
		stats.Kernel += r.took
		if err != nil {
			return e, result{}, stats, err
		}
		if !r.outdated() {
			return e, r, stats, c.rejection(e, r, ops)
		}
		if err := c.recheck(ops); err != nil {
			return e, result{}, stats, err
		}
	}
	return nil, result{}, Stats{}, ErrBusy
}

type result struct {
	acknowledged bool
	// failures are ordered by message.
	failures []failure
	// by message
	handles map[int]uint64
	took    time.Duration
}

type failure struct {
	message int
	kernelError
}

func (r *result) outdated() bool {
	return len(r.failures) > 0 && r.failures[0].message == 0 && r.failures[0].errno == unix.ERESTART
}

func (l *link) send(e *encoder) (result, error) {
	if !e.changes() {
		return result{}, nil // before Linux 6.10 no message can request an answer
	}
	receive := max(minReceive, len(e.messages)*perError)
	for _, echo := range e.echoes {
		receive += e.end(echo.message) - e.messages[echo.message].offset + perEcho
	}
	if err := l.sock.reserve(len(e.buf)+sendReserve, min(receive, maxReceive)); err != nil {
		return result{}, err
	}
	if err := l.sock.drain(); err != nil {
		return result{}, err
	}
	l.seq += uint32(len(e.messages))
	if err := l.sock.send(e.buf); err != nil {
		switch {
		case errors.Is(err, unix.EMSGSIZE):
			return result{}, fmt.Errorf("send %d bytes: %w", len(e.buf), ErrTooLarge)
		case errors.Is(err, ErrClosed):
			return result{}, err
		}
		return result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	r, err := l.collect(e)
	if err != nil {
		return result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	r.took = l.sock.writing.took
	return r, nil
}

// errAnswered ends the reading: the acknowledgement comes after errors.
var errAnswered = errors.New("answered")

// The kernel puts all answers into the receive buffer before the sending system call returns.
func (l *link) collect(e *encoder) (result, error) {
	var r result
	if len(e.echoes) > 0 {
		r.handles = make(map[int]uint64, len(e.echoes))
	}
	add := func(h header, payload []byte) error {
		if err := r.add(e, h, payload); err != nil {
			return err
		}
		if r.acknowledged && len(r.failures) == 0 && len(e.echoes) == 0 {
			return errAnswered
		}
		return nil
	}
	err := l.replies(add)
	for errors.Is(err, unix.ENOBUFS) { // answers that fitted into the buffer are still there
		err = l.replies(add)
	}
	if errors.Is(err, errAnswered) {
		l.sock.pending = false
		return r, nil
	}
	switch {
	case errors.Is(err, ErrClosed), err != nil && len(r.failures) == 0:
		return result{}, err
	case len(r.failures) == 0 && !r.acknowledged:
		return result{}, errors.New("no acknowledgement")
	}
	slices.SortStableFunc(r.failures, func(a, b failure) int { return a.message - b.message })
	return r, nil
}

func (r *result) add(e *encoder, h header, payload []byte) error {
	i := int(h.seq - e.seq)
	if i < 0 || i >= len(e.messages) {
		return nil
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
}

func (c *Conn) committed(e *encoder, r result) error {
	if !e.changes() {
		return nil
	}
	c.advance(e)
	c.tables.update(func(tables map[nft.TableID]bool) {
		for id, t := range e.tables {
			if !t.exists {
				delete(tables, id)
			} else if _, known := tables[id]; !known || t.created {
				tables[id] = c.owner
			}
		}
	})
	var missing []AddRule
	for _, echo := range e.echoes {
		if n, ok := r.handles[echo.message]; ok {
			echo.rule.Handle.N = n
		} else {
			missing = append(missing, echo.rule)
		}
	}
	if err := c.findHandles(missing); err != nil {
		return fmt.Errorf("%w: read handles of new rules: %w", ErrUnknownOutcome, err)
	}
	return nil
}

// advance counts the batch if it had an effect: others begin no generation (nf_tables_commit), and
// counting them would hide the next change by another process.
func (c *Conn) advance(e *encoder) {
	if e.guard && !e.certain {
		gen, err := c.generation()
		if err != nil || gen == c.gen {
			// a too low generation only causes a recheck
			return
		}
	}
	// gen may belong to a later change by another process.
	c.gen++
	if c.gen == 0 {
		c.gen = 1 // the kernel skips 0
	}
}

// recheck records the generation, or returns ErrDrift for a deleted or replaced table.
func (c *Conn) recheck(ops []Op) error {
	gen, err := c.generation()
	if err != nil {
		return err
	}
	tables, err := c.listTables()
	if err != nil {
		return err
	}
	marked := make(map[nft.TableID]bool, len(tables))
	for _, t := range tables {
		marked[t.ID] = t.Ours
	}
	for _, op := range ops {
		id := op.table()
		if _, ok := c.tables.lookup(id); !ok || marked[id] {
			continue
		}
		_, exists := marked[id]
		if _, isAdd := op.(AddTable); isAdd && !exists {
			marked[id] = true
			continue
		}
		return fmt.Errorf("table %s: %w", id, ErrDrift)
	}
	c.gen = gen
	return nil
}
