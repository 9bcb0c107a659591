package client

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// outbox holds the updates of a session until they are answered, and chooses the next message: an
// update in its turn, or a snapshot of a fragment that the stream lacks.
type outbox struct {
	pace pace
	// signalled if there may be a message
	wake chan struct{}

	mu sync.Mutex
	// nil without a stream, or if a resync must be written first
	stream    publishStream
	online    bool
	fragments map[string]*fragment
	// fragments that need a snapshot
	behind []*fragment
	// not sent on this stream, in order
	queue []*update
	// sent on this stream without acknowledgement, by number
	inflight        map[uint64]*message
	started, lastID uint64
	closed          bool
}

func newOutbox(p pace) *outbox {
	return &outbox{pace: p, wake: make(chan struct{}, 1), fragments: make(map[string]*fragment), inflight: make(map[uint64]*message)}
}

func (o *outbox) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) use(stream publishStream, online bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stream, o.online = stream, online
}

// add queues an update. It registers a direct update as in flight if no update comes before. The
// caller must then send the message.
func (o *outbox) add(u *update, direct bool) (publishStream, *message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		u.answer(0, ErrClosed)
		return nil, nil
	}
	f := o.fragments[u.name]
	if u.patch != nil && !f.patchable() {
		u.answer(0, noSnapshot(u.name))
		return nil, nil
	}
	if f == nil {
		f = &fragment{name: u.name, number: o.started}
		o.fragments[u.name] = f
	}
	o.started++
	u.number = o.started
	if last := o.queued(u.name); last != nil && !o.online && (f.live || u.patch == nil && last.patch == nil && last.shared(u)) {
		// Without a stream, one update per fragment is enough.
		last.absorb(u)
		if u.patch == nil {
			f.latest = last
		}
		return nil, nil
	}
	f.want(u)
	if direct && o.stream != nil && len(o.queue)+len(o.inflight)+len(o.behind) == 0 && f.sendable() && f.unfit(u) == nil {
		return o.stream, o.register(f, &message{updates: []*update{u}, patch: u.patch})
	}
	o.queue = append(o.queue, u)
	o.nudge()
	return nil, nil
}

func (o *outbox) queued(name string) *update {
	for _, u := range slices.Backward(o.queue) {
		if u.name == name {
			return u
		}
	}
	return nil
}

func (o *outbox) register(f *fragment, m *message) *message {
	o.lastID++
	m.id, m.name = o.lastID, f.name
	o.inflight[m.id] = m
	f.inflight++
	f.resyncing = f.resyncing || m.whole() && (m.resync || f.live)
	return m
}

// setPatch sets the difference of a message, and returns the revision of the last commit.
func (o *outbox) setPatch(m *message, p *weftv1.Patch) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.patch = p
	return o.fragments[m.name].revision
}

func (o *outbox) need(f *fragment) {
	f.known = false
	if !f.behind {
		f.behind = true
		o.behind = append(o.behind, f)
	}
	o.nudge()
}

// next returns the next message, or nil.
func (o *outbox) next(now time.Time) *message {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() {
		o.behind = slices.DeleteFunc(o.behind, func(f *fragment) bool { return !f.behind })
	}()
	for _, f := range o.behind {
		if f.behind && f.inflight == 0 && !f.retry.After(now) {
			if m := o.resync(f); m != nil {
				return o.register(f, m)
			}
		}
	}
	// Updates of different fragments may need each other, so one that waits blocks the rest.
	for len(o.queue) > 0 {
		u := o.queue[0]
		f := o.fragments[u.name]
		if err := f.unfit(u); err != nil {
			o.take(u)
			o.resolve(u, 0, err)
			continue
		}
		if m := o.message(f, u); m != nil {
			return o.register(f, m)
		}
		break
	}
	return nil
}

// message dequeues the first update of a fragment, or returns nil if it must wait.
func (o *outbox) message(f *fragment, u *update) *message {
	switch {
	case u.patch != nil && f.sendable():
		o.take(u)
		return &message{updates: []*update{u}, patch: u.patch}
	case f.resyncing || f.inflight > 0 || u.patch != nil && !f.live:
		return nil
	case u.patch != nil:
		return o.resync(f)
	}
	o.take(u)
	m := &message{updates: []*update{u}, content: u.content}
	if f.known && !f.live {
		m.before = f.base
	}
	return m
}

// resync returns a snapshot with the base of a fragment and the queued updates that its answer
// judges. Without the updates, it could briefly undo updates of the last stream.
func (o *outbox) resync(f *fragment) *message {
	f.behind, f.retry = false, time.Time{}
	m := &message{content: f.base, resync: true}
	patched, ended := false, false
	for _, u := range o.takeAll(func(u *update) bool { return u.name == f.name }) {
		// The answer to a Put does not judge the updates before it. Live content has them all.
		if ended = ended || u.alone || u.patch == nil && len(m.updates) > 0 && !f.live || u.patch != nil && m.content == nil; ended {
			o.requeue(u)
			continue
		}
		m.updates = append(m.updates, u)
		switch {
		case u.patch == nil:
			m.content, patched = u.content, false
		case !patched:
			m.content, patched = m.content.Clone(), true
			fallthrough
		default:
			m.content.Apply(u.patch)
		}
	}
	if m.content == nil && len(m.updates) == 0 && !f.unsure {
		return nil
	}
	return m
}

func (o *outbox) requeue(updates ...*update) {
	o.queue = append(o.queue, updates...)
	slices.SortFunc(o.queue, func(a, b *update) int { return cmp.Compare(a.number, b.number) })
}

func (o *outbox) take(u *update) { o.takeAll(func(v *update) bool { return u == v }) }

func (o *outbox) takeAll(match func(*update) bool) []*update {
	var taken []*update
	o.queue = slices.DeleteFunc(o.queue, func(u *update) bool {
		if !match(u) {
			return false
		}
		taken = append(taken, u)
		return true
	})
	return taken
}

// recall queues the updates in flight again.
func (o *outbox) recall() {
	for _, id := range slices.Sorted(maps.Keys(o.inflight)) {
		m := o.inflight[id]
		for _, u := range m.updates {
			u.alone = false
		}
		o.fragments[m.name].unsure = true
		o.requeue(m.updates...)
	}
	clear(o.inflight)
}

// restart prepares for a new stream.
func (o *outbox) restart() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recall()
	for _, f := range slices.SortedFunc(maps.Values(o.fragments), func(a, b *fragment) int { return cmp.Compare(a.number, b.number) }) {
		f.inflight, f.resyncing, f.retry, f.known = 0, false, time.Time{}, false
		if f.lost == nil && (f.base != nil || f.unanswered > 0 || f.unsure) {
			o.need(f)
		}
	}
}

// fail answers all updates with an open outcome. The last Put or Withdraw of a fragment is still
// sent.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recall()
	for _, u := range slices.Clone(o.queue) {
		failure := fmt.Errorf("publish %s: %w", u.name, err)
		if u == o.fragments[u.name].latest {
			u.answer(0, failure)
			continue
		}
		o.take(u)
		o.resolve(u, 0, failure)
	}
}

// close answers all updates with ErrClosed.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.recall()
	for _, u := range o.queue {
		u.answer(0, ErrClosed)
	}
	o.queue = nil
}

func (o *outbox) resolve(u *update, revision uint64, err error) {
	f := o.fragments[u.name]
	f.unanswered--
	if f.latest == u {
		f.latest = nil
	}
	u.answer(revision, err)
	o.forget(f)
}

func (o *outbox) forget(f *fragment) {
	if f.idle() && o.fragments[f.name] == f {
		f.behind = false
		delete(o.fragments, f.name)
	}
}

// due returns the earliest retry of a fragment, or zero for never.
func (o *outbox) due() (next time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.behind {
		if !f.retry.IsZero() && (next.IsZero() || f.retry.Before(next)) {
			next = f.retry
		}
	}
	return next
}
