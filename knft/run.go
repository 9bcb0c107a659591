package knft

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/knftables"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// Run implements knftables.Interface. It waits for the commit. If ctx ends first, the outcome is open, and
// the next transaction waits for it.
//
// Possible errors: errors of the package; the transaction's own; ctx's.
func (a *Adapter) Run(ctx context.Context, tx *knftables.Transaction) error {
	if err := a.transact(ctx, tx, a.publish); err != nil {
		return fmt.Errorf("run transaction: %w", err)
	}
	return nil
}

// Check implements knftables.Interface. It returns the error that Run would return.
//
// Possible errors: see Run.
func (a *Adapter) Check(ctx context.Context, tx *knftables.Transaction) error {
	if err := a.transact(ctx, tx, a.plan); err != nil {
		return fmt.Errorf("check transaction: %w", err)
	}
	return nil
}

func (a *Adapter) transact(ctx context.Context, tx *knftables.Transaction, do func(context.Context, []command) error) error {
	cmds, err := commands(tx)
	if err != nil {
		return err
	}
	for i := range cmds {
		if id := cmds[i].table; a.cfg.Table != "" && (id.Name != a.cfg.Table || id.Family.String() != string(a.cfg.Family)) {
			return fmt.Errorf("%s: the adapter is for table %s %s", &cmds[i], a.cfg.Family, a.cfg.Table)
		}
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := a.synchronize(ctx); err != nil {
		return err
	}
	return do(ctx, cmds)
}

// takeovers bounds the retries after another adapter of the fragment was faster.
const takeovers = 3

func (a *Adapter) publish(ctx context.Context, cmds []command) error {
	for again := 0; ; again++ {
		err := a.attempt(ctx, cmds)
		switch {
		case !errors.Is(err, client.ErrTakenOver):
			return err
		case again == takeovers:
			return fmt.Errorf("%w: %w", ErrOutOfStep, err)
		}
		// Build on the other adapter's content.
		a.loaded = false
	}
}

func (a *Adapter) attempt(ctx context.Context, cmds []command) error {
	if err := a.load(ctx); err != nil {
		return err
	}
	if err := a.expire(ctx); err != nil {
		return err
	}
	var u *update
	if err := a.try(ctx, cmds, false, func(c *transaction) { u = a.update(c) }); err != nil || u == nil {
		return err
	}
	return a.send(ctx, u)
}

// update is a snapshot, a patch, or neither for a withdrawal.
type update struct {
	change *transaction
	put    *weftv1.Fragment
	patch  *weftv1.Patch
	// pending is set after sending, err after the answer.
	pending *client.Pending
	err     error
}

// update returns nil without differences. The caller holds mu.
func (a *Adapter) update(c *transaction) *update {
	u := &update{change: c}
	if a.published && !c.whole {
		if c.empty() {
			return nil
		}
		u.patch = c.patch(a.cfg.Fragment)
		return u
	}
	if u.put = a.fragment(); u.put == nil && !a.committed {
		return nil
	}
	return u
}

func (a *Adapter) send(ctx context.Context, u *update) error {
	switch {
	case u.patch != nil:
		u.pending = a.session.StartPatch(u.patch)
	case u.put != nil:
		u.pending = a.session.StartPut(u.put)
	default:
		u.pending = a.session.StartWithdraw(a.cfg.Fragment)
	}
	a.unsettled = u
	if err := a.synchronize(ctx); err != nil {
		return err
	}
	return u.err
}

// synchronize waits for the outcome of the last update, and reverts a rejected one. It returns only
// ctx's error.
func (a *Adapter) synchronize(ctx context.Context) error {
	u := a.unsettled
	if u == nil {
		return nil
	}
	_, err := u.pending.Wait(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	a.unsettled, u.err = nil, refusal(err)
	a.published = err == nil && (u.patch != nil || u.put != nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		u.change.rollback()
		return nil
	}
	a.committed = a.published
	u.change.content.partial = false
	u.change.start(time.Now())
	return nil
}

func (a *Adapter) plan(ctx context.Context, cmds []command) error {
	if err := a.load(ctx); err != nil {
		return err
	}
	req := &weftv1.PlanRequest{}
	err := a.try(ctx, cmds, true, func(c *transaction) {
		if f := a.fragment(); f != nil {
			req.Fragments = []*weftv1.Fragment{f}
		} else if a.committed {
			req.Withdraw = []*weftv1.FragmentName{{Name: a.cfg.Fragment}}
		}
		c.rollback()
	})
	if err != nil || len(req.Fragments)+len(req.Withdraw) == 0 {
		return err
	}
	resp, err := a.client.Plan(ctx, req)
	if err != nil {
		return refusal(err)
	}
	if r := resp.GetRejections(); len(r) > 0 {
		return refusal(&client.RejectedError{Fragment: a.cfg.Fragment, Violations: r[0].GetViolations()})
	}
	return nil
}

// try repeats apply with the merged tables that it needs. done is called with mu held: the session has not
// seen the content.
func (a *Adapter) try(ctx context.Context, cmds []command, lapse bool, done func(*transaction)) error {
	known := views{}
	for {
		err := a.apply(known, cmds, lapse, done)
		need := (*needed)(nil)
		if !errors.As(err, &need) {
			return err
		}
		if known[need.table], err = a.view(ctx, need); err != nil {
			return err
		}
	}
}

// apply first removes expired elements if lapse is true.
func (a *Adapter) apply(known views, cmds []command, lapse bool, done func(*transaction)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := newTransaction(a.content, known)
	if lapse {
		c.lapse(time.Now())
	}
	if err := c.apply(cmds); err != nil {
		return err
	}
	done(c)
	return nil
}
