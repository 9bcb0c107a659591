package conntrack

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// passes, the first included
const maxInterrupts = 5

func (c *Conn) sweep(ctx context.Context, what string, m *matcher) (deleted int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", what, explain(err))
		}
	}()
	if len(m.ports) > 0 {
		if m.local, err = c.listLocals(); err != nil {
			return 0, fmt.Errorf("list local addresses: %w", err)
		}
	}
	for _, family := range families {
		f, ok := m.filter(family)
		if !ok {
			continue
		}
		if err := repeat(func() error {
			n, err := c.sweepFamily(ctx, m, f)
			deleted += n
			return err
		}); err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// sweepFamily makes one pass, and continues if an entry cannot be removed.
func (c *Conn) sweepFamily(ctx context.Context, m *matcher, f filter) (deleted int, err error) {
	if !c.reply {
		f.from = end{}
	}
	req, err := dumpRequest(f)
	if err != nil {
		return 0, err
	}
	var errs []error
	var removals []netlink.Message
	remove := func() {
		n, err := c.remove(removals)
		deleted, removals = deleted+n, removals[:0]
		errs = append(errs, err)
	}
	err = c.pass(ctx, req, m, func(e *Entry) error {
		removal, err := e.deletion()
		if err != nil {
			return err
		}
		if removals = append(removals, removal); len(removals) == deleteBatch {
			remove()
		}
		return nil
	})
	remove()
	return deleted, errors.Join(append(errs, err)...)
}

type selector interface{ selects(e *Entry) bool }

// pass wraps EINTR if the dump may have missed entries because the table changed.
func (c *Conn) pass(ctx context.Context, req netlink.Message, s selector, f func(*Entry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.passes.Add(1)
	if _, err := c.dump.Send(req); err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	interrupted := false
	var e Entry
	for msg, err := range c.dump.ReceiveIter() {
		if err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		// leaving the loop discards the rest of the dump
		if err := ctx.Err(); err != nil {
			return err
		}
		c.read.Add(1)
		interrupted = interrupted || msg.Header.Flags&netlink.DumpInterrupted != 0
		if !e.decode(msg.Data, s) {
			continue
		}
		if err := f(&e); err != nil {
			return err
		}
	}
	if interrupted {
		return fmt.Errorf("dump: table changed during the dump: %w", unix.EINTR)
	}
	return nil
}

// repeat repeats an interrupted pass. A kernel without connection tracking has no entries.
func repeat(pass func() error) (err error) {
	for range maxInterrupts {
		if err = pass(); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	// nfnetlink returns EINVAL if a subsystem is not loaded
	if errors.Is(err, unix.EINVAL) && !loaded() {
		return nil
	}
	return err
}

func loaded() bool {
	_, err := os.Stat("/proc/sys/net/netfilter/nf_conntrack_max")
	return !errors.Is(err, os.ErrNotExist)
}
