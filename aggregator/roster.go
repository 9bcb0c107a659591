package aggregator

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/message"
)

// maxRecords bounds the publishers that the roster remembers. Those that are
// not connected and have done nothing for the longest are forgotten first.
const maxRecords = 1024

// roster records which publishers are connected, and how many of their updates
// were committed and rejected.
type roster struct {
	now func() time.Time

	mu      sync.Mutex
	records map[string]*publisherRecord
}

// publisherRecord is the record of one publisher.
type publisherRecord struct {
	sessions map[*Session]struct{}
	// committed and rejected count updates since the aggregator started.
	committed, rejected uint64
	last                *weftv1.Rejection
	lastAt              time.Time
	// active is when something was noted last.
	active time.Time
	// stays is true once a session lasted for steady. left is when the last session ended,
	// zero while there is one.
	stays bool
	left  time.Time
}

const (
	// steady is how long a session of a publisher lasts at least, once, if the end of its
	// sessions is noticed. What a program publishes that always ends sooner is meant to stay.
	steady = 30 * time.Second
	// absence is for how long a publisher has no session before it counts as gone: one that
	// is started again is back sooner.
	absence = 20 * time.Second
)

func newRoster(now func() time.Time) *roster {
	return &roster{now: now, records: make(map[string]*publisherRecord)}
}

// record returns a publisher's record, and makes it if it is new. It is called
// with the lock held.
func (r *roster) record(publisher string) *publisherRecord {
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

// forget drops the record that has not been used for the longest.
func (r *roster) forget() {
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

// join and leave follow the sessions.
func (r *roster) join(s *Session) {
	s.since = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.record(s.publisher)
	p.sessions[s], p.left = struct{}{}, time.Time{}
}

func (r *roster) leave(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.record(s.publisher)
	delete(p.sessions, s)
	now := r.now()
	p.stays = p.stays || now.Sub(s.since) >= steady
	if len(p.sessions) == 0 {
		p.left = now
	}
}

// gone returns the publishers that have no session but had one that lasted, and for how long
// they have had none.
func (r *roster) gone() map[string]time.Duration {
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

// committed counts updates that were acknowledged.
func (r *roster) committed(accepted []*submission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range accepted {
		if !s.stored && !s.leaving {
			r.record(s.key().Publisher).committed++
		}
	}
}

// rejected counts a rejection and keeps it.
func (r *roster) rejected(e *RejectedError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.record(e.Fragment.Publisher)
	p.rejected++
	p.last = &weftv1.Rejection{Fragment: message.Name(e.Fragment), Violations: e.Violations}
	p.lastAt = p.active
}

// ListPublishers returns the publishers that have fragments or are connected,
// by name. It does not wait while the aggregator starts.
//
// Possible errors: ErrStandby, ErrStopped.
func (a *Aggregator) ListPublishers() (*weftv1.ListPublishersResponse, error) {
	if err := a.Healthy(); err != nil {
		return nil, err
	}
	all := make(map[string]*weftv1.PublisherStatus)
	fragments, _ := a.List()
	for _, f := range fragments {
		p := publisherStatus(all, f.GetFragment().GetPublisher())
		p.Fragments++
		if f.GetState() == weftv1.FragmentStatus_STATE_ADOPTED {
			p.Adopted++
		}
		p.Rules += f.GetRules()
		p.Elements += f.GetElements()
		p.Shadowed += f.GetShadowed()
	}
	a.roster.report(all)
	for name, p := range all {
		holds := a.statuses.holds(name)
		holds.Bytes += a.unconfirmed.Kept(name)
		p.Limits = limitStatuses(a.cfg.Access.Publisher(name), holds, len(p.GetSessions()))
	}
	out := &weftv1.ListPublishersResponse{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out.Publishers = append(out.Publishers, all[name])
	}
	return out, nil
}

// publisherStatus returns the status of a publisher, which it adds if it is new.
func publisherStatus(all map[string]*weftv1.PublisherStatus, name string) *weftv1.PublisherStatus {
	if all[name] == nil {
		all[name] = &weftv1.PublisherStatus{Name: name}
	}
	return all[name]
}

// report adds what the roster knows to the statuses of publishers, and adds
// publishers that are connected.
func (r *roster) report(all map[string]*weftv1.PublisherStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, rec := range r.records {
		if all[name] == nil && len(rec.sessions) == 0 {
			continue
		}
		p := publisherStatus(all, name)
		p.Committed, p.Rejected, p.LastRejection = rec.committed, rec.rejected, rec.last
		if rec.last != nil {
			p.LastRejected = timestamppb.New(rec.lastAt)
		}
		for s := range rec.sessions {
			p.Sessions = append(p.Sessions, &weftv1.SessionStatus{
				Pid: s.pid, Uid: s.uid, Since: timestamppb.New(s.since), Pending: uint32(max(s.pending.Load(), 0)), //nolint:gosec // a count
			})
		}
		slices.SortFunc(p.Sessions, func(a, b *weftv1.SessionStatus) int {
			return cmp.Or(a.GetSince().AsTime().Compare(b.GetSince().AsTime()), cmp.Compare(a.GetPid(), b.GetPid()))
		})
	}
}
