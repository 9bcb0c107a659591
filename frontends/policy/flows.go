package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/render"
)

const (
	// After commitAge, packets accepted by the old rules are in conntrack.
	commitAge = time.Second
	// answerTime is the wait after the commit before a denied connection without an end, such as
	// UDP, is deleted: a pod's answer to an earlier packet would open a connection in the other
	// direction. nf_conntrack_udp_timeout is the same.
	answerTime = 30 * time.Second
	// maxDelay limits the time between two listings of an address, which starts at twice commitAge
	// and doubles.
	maxDelay   = time.Minute
	maxDeleted = 65_536
)

type flowTable interface {
	ListFlows(ctx context.Context, addrs []netip.Addr, f func([]client.Flow) error) error
	ListAllFlows(ctx context.Context, f func([]client.Flow) error) error
	DeleteFlows(ctx context.Context, flows []client.Flow) (int, error)
}

type rechecked interface {
	Judge(f judge.Flow, local func(netip.Addr) bool) judge.Verdict
	Rechecked() []render.Rechecked
	EndRecheck(looked []render.Rechecked, denied map[netip.Addr]struct{}) (changed bool)
	LimitRecheck(limited bool)
}

// flows cuts connections that policies no longer allow. While an address is rechecked, the kernel
// drops their packets one by one. flows deletes denied ones once answers can no longer come, and
// then ends the recheck.
type flows struct {
	renderer   rechecked
	connect    func(context.Context) (flowTable, error) // must not wait for an aggregator
	addresses  func() ([]netip.Addr, error)             // the node's own
	changed    func()                                   // called when the renderer has something to send
	answerTime time.Duration                            // less in tests
	now        func() time.Time
	metrics    *flowMetrics
	log        *slog.Logger

	committed chan struct{} // has a value after a commit

	// The fields below belong to run.
	attempts map[netip.Addr]attempt
	// earliest is for the next listing; failed is the wait after a failed listing, 0 after a
	// success.
	earliest time.Time
	failed   time.Duration
	limited  bool // has been logged
}

// attempt times the listings of an address narrowed by a commit.
type attempt struct {
	committed, next time.Time
	delay           time.Duration
}

func (f *flows) notify() {
	select {
	case f.committed <- struct{}{}:
	default:
	}
}

func (f *flows) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := f.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.committed:
			// Addresses narrowed by the commit are due then.
			at := f.now().Add(commitAge)
			if !next.IsZero() && !at.Before(next) {
				continue
			}
			next = at
		case <-timer.C:
			next = f.step(ctx)
		}
		if !next.IsZero() {
			timer.Reset(next.Sub(f.now()))
		}
	}
}

// step returns the time of the next call, zero for after the next commit.
func (f *flows) step(ctx context.Context) time.Time {
	began := f.now()
	due, next := f.due(began)
	if len(due) == 0 || began.Before(f.earliest) {
		return later(next, f.earliest)
	}
	err := f.look(ctx, due)
	if ctx.Err() != nil {
		return time.Time{}
	}
	now := f.now()
	f.failed = f.report(err)
	f.earliest = now.Add(max(commitAge, f.failed))
	if err == nil {
		for _, d := range due {
			a := f.attempts[d.Addr]
			a.next, a.delay = now.Add(a.delay), min(2*a.delay, maxDelay)
			f.attempts[d.Addr] = a
		}
	}
	_, next = f.due(now)
	return later(next, f.earliest)
}

// later returns the later time; a zero a means never.
func later(a, b time.Time) time.Time {
	if a.IsZero() || a.After(b) {
		return a
	}
	return b
}

// due returns a zero next if there is no attempt.
func (f *flows) due(now time.Time) (due []render.Rechecked, next time.Time) {
	attempts := make(map[netip.Addr]attempt)
	for _, r := range f.renderer.Rechecked() {
		if r.Committed.IsZero() {
			continue
		}
		a, ok := f.attempts[r.Addr]
		if !ok || !a.committed.Equal(r.Committed) {
			a = attempt{committed: r.Committed, next: r.Committed.Add(commitAge), delay: 2 * commitAge}
		}
		attempts[r.Addr] = a
		if !a.next.After(now) {
			due = append(due, r)
		}
		if next.IsZero() || a.next.Before(next) {
			next = a.next
		}
	}
	f.attempts = attempts
	return due[:min(len(due), client.MaxFlowAddresses)], next
}

// report returns the wait. Without the right to list the table, a recheck has a time limit.
func (f *flows) report(err error) time.Duration {
	switch {
	case err == nil:
		if f.limited {
			f.log.Info("connections that network policies do not allow any more can be listed")
		}
		f.limited = false
		f.renderer.LimitRecheck(false)
		return 0
	case errors.Is(err, client.ErrPermission) || errors.Is(err, errors.ErrUnsupported):
		f.renderer.LimitRecheck(true)
		if !f.limited {
			f.log.Warn("connections that network policies do not allow any more cannot be listed: they are cut packet by packet, and only for a limited time",
				"remedy", "grant flows: true to the publisher "+Publisher+" in the configuration of the aggregator", "error", err.Error())
		}
		f.limited = true
		return maxDelay
	default:
		f.log.Debug("cannot list connections", "error", err.Error())
		return min(2*max(f.failed, commitAge), maxDelay)
	}
}

// look deletes denied connections without outstanding answers, and ends the recheck of addresses
// without denied connections.
func (f *flows) look(ctx context.Context, due []render.Rechecked) error {
	table, err := f.connect(ctx)
	if err != nil {
		return err
	}
	own, err := f.addresses()
	if err != nil {
		return fmt.Errorf("list the addresses of the node: %w", err)
	}
	l := newListing(due, own, f.now().Add(-f.answerTime))
	judged := func(some []client.Flow) error {
		for i := range some {
			l.judge(f.renderer, &some[i])
		}
		f.metrics.judged.Add(float64(len(some)))
		return nil
	}
	if l.allOf(netip.IPv4Unspecified()) || l.allOf(netip.IPv6Unspecified()) {
		err = table.ListAllFlows(ctx, judged)
	} else {
		err = table.ListFlows(ctx, slices.Collect(maps.Keys(l.addresses)), judged)
	}
	if err != nil {
		return err
	}
	if f.renderer.EndRecheck(due, l.denied) {
		f.changed()
	}
	if len(l.deleted) == 0 {
		return nil
	}
	n, err := table.DeleteFlows(ctx, l.deleted)
	f.metrics.deleted.Add(float64(n))
	return err
}

func newFlows(f *Frontend) (*flows, error) {
	m, err := newFlowMetrics(f.cfg.Registerer, f.content.Renderer)
	return &flows{
		renderer: f.content.Renderer, addresses: interfaceAddresses, changed: f.publisher.Wake,
		connect:    func(ctx context.Context) (flowTable, error) { return f.connection.open(ctx) },
		answerTime: answerTime, now: f.cfg.Now, metrics: m, log: f.cfg.Logger, committed: make(chan struct{}, 1),
	}, err
}

func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out, nil
}
