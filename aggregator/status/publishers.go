package status

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/message"
)

const maxRecords = 1024

// Session is a connected stream of a publisher.
type Session struct {
	Publisher string
	PID       int32
	UID       uint32
	// Pending counts unanswered updates.
	Pending atomic.Int32
	since   time.Time
}

// Publishers records present and earlier publishers, and counts their updates.
type Publishers struct {
	now func() time.Time

	mu      sync.Mutex
	records map[string]*publisherRecord
}

type publisherRecord struct {
	sessions            map[*Session]struct{}
	committed, rejected uint64
	last                *weftv1.Rejection
	lastAt              time.Time
	active              time.Time
	// stays is true after a session of at least steady. left is zero during a session.
	stays bool
	left  time.Time
}

const (
	// steady is the least time of a session after which the publisher's absence is reported.
	steady = 30 * time.Second
	// absence is the time without a session after which a publisher is gone: longer than a restart.
	absence = 20 * time.Second
)

func NewPublishers(now func() time.Time) *Publishers {
	return &Publishers{now: now, records: make(map[string]*publisherRecord)}
}

// The lock is held.
func (r *Publishers) record(publisher string) *publisherRecord {
	p := r.records[publisher]
	if p == nil {
		if len(r.records) >= maxRecords {
			r.forget()
		}
		p = &publisherRecord{sessions: make(map[*Session]struct{})}
		r.records[publisher] = p
	}
	p.active = r.now()
	return p
}

func (r *Publishers) forget() {
	oldest := ""
	for name, p := range r.records {
		if len(p.sessions) > 0 {
			continue
		}
		if o := r.records[oldest]; o == nil || p.active.Before(o.active) {
			oldest = name
		}
	}
	delete(r.records, oldest)
}

// Join begins a session.
func (r *Publishers) Join(s *Session) {
	s.since = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.record(s.Publisher)
	p.sessions[s], p.left = struct{}{}, time.Time{}
}

// Leave ends a session.
func (r *Publishers) Leave(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.record(s.Publisher)
	delete(p.sessions, s)
	now := r.now()
	p.stays = p.stays || now.Sub(s.since) >= steady
	if len(p.sessions) == 0 {
		p.left = now
	}
}

// Gone returns the publishers absent after a steady session, and the time since they left.
func (r *Publishers) Gone() map[string]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, now := make(map[string]time.Duration), r.now()
	for name, p := range r.records {
		if since := now.Sub(p.left); p.stays && !p.left.IsZero() && since >= absence {
			out[name] = since
		}
	}
	return out
}

// Committed counts an acknowledged update.
func (r *Publishers) Committed(publisher string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record(publisher).committed++
}

// Rejected counts and keeps a rejection.
func (r *Publishers) Rejected(e *admission.RejectedError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.record(e.Fragment.Publisher)
	p.rejected++
	p.last = &weftv1.Rejection{Fragment: message.Name(e.Fragment), Violations: e.Violations}
	p.lastAt = p.active
}

// Report adds the recorded values and the connected publishers.
func (r *Publishers) Report(all map[string]*weftv1.PublisherStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, rec := range r.records {
		if all[name] == nil && len(rec.sessions) == 0 {
			continue
		}
		p := Of(all, name)
		p.Committed, p.Rejected, p.LastRejection = rec.committed, rec.rejected, rec.last
		if rec.last != nil {
			p.LastRejected = timestamppb.New(rec.lastAt)
		}
		for s := range rec.sessions {
			p.Sessions = append(p.Sessions, &weftv1.SessionStatus{
				Pid: s.PID, Uid: s.UID, Since: timestamppb.New(s.since), Pending: uint32(max(s.Pending.Load(), 0)), //nolint:gosec // a count
			})
		}
		slices.SortFunc(p.Sessions, func(a, b *weftv1.SessionStatus) int {
			return cmp.Or(a.GetSince().AsTime().Compare(b.GetSince().AsTime()), cmp.Compare(a.GetPid(), b.GetPid()))
		})
	}
}

// Of returns the status of a publisher, added to all if needed.
func Of(all map[string]*weftv1.PublisherStatus, name string) *weftv1.PublisherStatus {
	if all[name] == nil {
		all[name] = &weftv1.PublisherStatus{Name: name}
	}
	return all[name]
}
