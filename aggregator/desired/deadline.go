package desired

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// due is when a fragment's statement of an element expires.
type due struct {
	// at is on the clock of Advance. It is 0 from the statement until Accept, when the time begins.
	at time.Duration
	// queued is the at of its entry in the queue, 0 if there is none. It may be before at.
	queued time.Duration
}

// expiryMargin is how long after a deadline the kernel certainly does not have the element any
// more: it rounds both ends up to its ticks.
const expiryMargin = 2 * packed.Jiffy

// expirySlack is how much a kernel's deadline may differ from the state's: the kernel sees an
// element before its transaction ends.
const expirySlack = time.Second

// fewExpiries is a length of the queue that is not worth cleaning.
const fewExpiries = 1024

// expiries has the time, and when statements of elements expire.
type expiries struct {
	now   time.Duration
	queue expiryQueue
	// most is the length of the queue at which entries that mean nothing any more are removed.
	most int
	// stated are the statements with timeouts since the last Accept. An entry without a key
	// stands for all elements of the share.
	stated []expiry
}

// expiry is a statement of an element, which expires at a time.
type expiry struct {
	at    time.Duration
	set   *set
	share *setShare
	// all is true for all elements of the share, id names one.
	all bool
	id  string
}

// live reports whether an entry of the queue is the one of its statement.
func (e *expiry) live() bool {
	d, ok := e.share.due[e.id]
	return ok && d.queued == e.at && slices.Contains(e.set.shares, e.share)
}

// expiryQueue is a container/heap in the order of time.
type expiryQueue []expiry

func (q expiryQueue) Len() int { return len(q) }

func (q expiryQueue) Less(i, j int) bool { return q[i].at < q[j].at }

func (q expiryQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *expiryQueue) Push(e any) { *q = append(*q, e.(expiry)) }

func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = expiry{}
	*q = (*q)[:last]
	return e
}

// timed reports whether an element of a set expires.
func timed(d *nftset.Set, e *nftset.Element) bool {
	return d.Flags&nftset.FlagTimeout != 0 && packed.Timeout(d, e) != 0
}

// Advance sets the time on a clock that never jumps and stands still while the machine sleeps, as
// the kernel's. Call it before Accept: the time of the elements of a commit begins then.
func (s *State) Advance(now time.Duration) { s.expiries.now = now }

// NextExpiry returns when Expire may have something to do.
func (s *State) NextExpiry() (at time.Duration, ok bool) {
	if len(s.expiries.queue) == 0 {
		return 0, false
	}
	return s.expiries.queue[0].at, true
}

// Expire forgets the elements whose time is over, as the kernel has done. It returns a patch for each
// share that loses some. If successor is true, another fragment states such an element and has time
// left: commit the next Plan at once. The state must not have changed since the last Accept.
func (s *State) Expire(now time.Duration) (expired []*Update, successor bool) {
	s.Advance(now)
	x, of := &s.expiries, map[*setShare]*Update{}
	for len(x.queue) > 0 && x.queue[0].at <= now {
		e := heap.Pop(&x.queue).(expiry)
		if !e.live() {
			continue
		}
		if d := e.share.due[e.id]; d.at > e.at {
			s.expireAt(e.set, e.share, e.id, due{at: d.at})
			continue
		}
		old, takesOver := s.forget(e)
		successor = successor || takesOver
		u := of[e.share]
		if u == nil {
			u = &Update{Fragment: e.share.fragment.key, Tables: []TableUpdate{{Table: e.set.table.id, Elements: []Elements{{Set: e.set.id.Name, Decl: e.share.decl}}}}}
			of[e.share], expired = u, append(expired, u)
		}
		gone := &u.Tables[0].Elements[0].Remove
		*gone = append(*gone, old)
	}
	if len(expired) > 0 {
		s.evaluate()
	}
	return expired, successor
}

// forget removes an element that the kernel does not have any more from its share. It reports whether
// that of another share comes into force.
func (s *State) forget(e expiry) (old nftset.Element, takesOver bool) {
	s.work.Keys++
	delete(e.share.due, e.id)
	old, _ = e.share.elements.Get(e.id)
	c := s.write(e.set, e.share, e.id, old, true, nftset.Element{}, false)
	if e.set.merge != nil {
		// What others state without a timeout is in the kernel already.
		_, c.had = e.set.merge.Get(e.id)
		c.has = c.has && !c.had
	}
	if !c.has || c.from == c.to {
		return old, false
	}
	s.mark(e.set)
	if e.set.touched == nil {
		e.set.touched = map[string]touch{}
	}
	e.set.touched[e.id] = touch{origin: -1}
	return old, true
}

// expireAt notes when a statement expires. One entry in the queue is enough: if the time moves to a
// later one, the entry is put back when it is due.
func (s *State) expireAt(o *set, sh *setShare, id string, d due) {
	x := &s.expiries
	if sh.due == nil {
		sh.due = map[string]due{}
	}
	if d.queued == 0 || d.at < d.queued {
		if len(x.queue) >= max(x.most, fewExpiries) {
			x.queue = slices.DeleteFunc(x.queue, func(e expiry) bool { return !e.live() })
			heap.Init(&x.queue)
			x.most = 2 * len(x.queue)
		}
		d.queued = d.at
		heap.Push(&x.queue, expiry{at: d.at, set: o, share: sh, id: id})
	}
	sh.due[id] = d
}

// expiry returns when an element of a share expires, 0 if it does not, or if there is no share.
func (sh *setShare) expiry(id string) time.Duration {
	if sh == nil {
		return 0
	}
	return sh.due[id].at
}

// restate journals that a fragment states an element, or with has false that it does not any more.
// Its time begins at Accept.
func (s *State) restate(o *set, sh *setShare, id string, has bool) {
	d, had := sh.due[id]
	if !had && !has {
		return
	}
	if !had {
		id = strings.Clone(id)
	}
	if sh.due == nil {
		sh.due = map[string]due{}
	}
	n := len(s.expiries.stated)
	setKey(sh.due, id, due{queued: d.queued}, has)
	if has {
		s.expiries.stated = append(s.expiries.stated, expiry{set: o, share: sh, id: id})
	}
	s.undo = append(s.undo, func() {
		setKey(sh.due, id, d, had)
		s.expiries.stated = s.expiries.stated[:n]
	})
}

// restateAll is restate for all elements of a share that is new.
func (s *State) restateAll(o *set, sh *setShare) {
	if sh.decl.Flags&nftset.FlagTimeout == 0 {
		return
	}
	n := len(s.expiries.stated)
	s.expiries.stated = append(s.expiries.stated, expiry{set: o, share: sh, all: true})
	s.undo = append(s.undo, func() { s.expiries.stated = s.expiries.stated[:n] })
}

// acceptTimes begins the time of what was stated since the last Accept.
func (s *State) acceptTimes() {
	begin := func(o *set, sh *setShare, id string, e *nftset.Element) {
		if timed(sh.decl, e) {
			left := e.Expires()
			if left == 0 {
				left = packed.Timeout(sh.decl, e)
			}
			s.expireAt(o, sh, id, due{s.deadline(left), sh.due[id].queued})
		}
	}
	for _, st := range s.expiries.stated {
		if !slices.Contains(st.set.shares, st.share) {
			continue
		}
		if st.all {
			for id, e := range st.share.elements.All() {
				begin(st.set, st.share, strings.Clone(id), &e)
			}
		} else if e, ok := st.share.elements.Get(st.id); ok && st.share.due[st.id].at == 0 {
			begin(st.set, st.share, st.id, &e)
		}
	}
}

// deadline returns when the kernel certainly does not have an element any more that has time left.
func (s *State) deadline(left time.Duration) time.Duration {
	return s.expiries.now + left + expiryMargin
}

// rest returns a statement with the time that is left of it: all of it, if it is new.
func (s *State) rest(sh *setShare, id string, e nftset.Element) nftset.Element {
	if at := sh.expiry(id); at != 0 {
		e.State = nftset.NewState(max(at-expiryMargin-s.expiries.now, packed.Jiffy).Truncate(time.Millisecond), e.Stateful())
	}
	return e
}

// renews reports whether the kernel's element of a key stays and needs another time: e, which sh
// states, is new or has another deadline.
func (t *touch) renews(d *nftset.Set, sh *setShare, id string, e *nftset.Element) bool {
	at := sh.expiry(id)
	return timed(d, e) && (at == 0 || at != t.due)
}

// lags reports whether the kernel, which says what is left of an element's time, has another deadline than the
// state.
func (s *State) lags(sh *setShare, id string, left time.Duration) bool {
	at := sh.expiry(id)
	return at != 0 && left != 0 && (s.deadline(left)-at).Abs() > expirySlack
}
