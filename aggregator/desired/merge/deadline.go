package merge

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Due is when a fragment's statement of an element expires.
type Due struct {
	// At is on the clock of Advance, or 0 before Accept.
	At time.Duration
	// queued is the time of the entry in the queue, or 0. It may be before At.
	queued time.Duration
}

// ExpiryMargin is the time after a deadline until an element is surely gone: the kernel rounds both
// ends up to its ticks.
const ExpiryMargin = 2 * packed.Jiffy

// expirySlack bounds the error of a deadline: the kernel starts an element's time before the
// transaction ends.
const expirySlack = time.Second

// FewExpiries is the shortest queue to clean.
const FewExpiries = 1024

type expiries struct {
	Now   time.Duration
	Queue expiryQueue
	most  int
	// stated are the statements with timeouts since Accept. most is the length at which ExpireAt
	// cleans Queue.
	stated []expiry
}

type expiry struct {
	at    time.Duration
	set   *Set
	share *SetShare
	// all stands for all elements, in place of id.
	all bool
	id  string
}

func (e *expiry) live() bool {
	d, ok := e.share.Due[e.id]
	return ok && d.queued == e.at && slices.Contains(e.set.Shares, e.share)
}

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

func Timed(d *nftset.Set, e *nftset.Element) bool {
	return d.Flags&nftset.FlagTimeout != 0 && packed.Timeout(d, e) != 0
}

// Advance sets the time of a clock that never jumps and stops during suspend, as the kernel's. Call
// it before Accept, when the time of new elements starts.
func (x *expiries) Advance(now time.Duration) { x.Now = now }

// NextExpiry returns when Expire may have work.
func (x *expiries) NextExpiry() (at time.Duration, ok bool) {
	if len(x.Queue) == 0 {
		return 0, false
	}
	return x.Queue[0].at, true
}

// Expire forgets elements that the kernel has removed after their time, and returns a patch for
// each share. successor is true if another fragment states such an element with time left: commit
// the next plan at once. No change may have followed the last Accept.
func (s *State) Expire(now time.Duration) (expired []*desired.Update, successor bool) {
	s.Expiries.Advance(now)
	x, of := &s.Expiries, map[*SetShare]*desired.Update{}
	for len(x.Queue) > 0 && x.Queue[0].at <= now {
		e := heap.Pop(&x.Queue).(expiry)
		if !e.live() {
			continue
		}
		if d := e.share.Due[e.id]; d.At > e.at {
			s.Expiries.ExpireAt(e.set, e.share, e.id, Due{At: d.At})
			continue
		}
		old, takesOver := e.forget(s)
		successor = successor || takesOver
		u := of[e.share]
		if u == nil {
			u = &desired.Update{Fragment: e.share.Fragment.Key, Tables: []desired.TableUpdate{{Table: e.set.Table.ID, Elements: []desired.Elements{{Set: e.set.ID.Name, Decl: e.share.Decl}}}}}
			of[e.share], expired = u, append(expired, u)
		}
		gone := &u.Tables[0].Elements[0].Remove
		*gone = append(*gone, old)
	}
	if len(expired) > 0 {
		s.Paths.Evaluate()
	}
	return expired, successor
}

// forget reports whether an element of another share takes effect.
func (e *expiry) forget(s *State) (old nftset.Element, takesOver bool) {
	s.Looked.Keys++
	delete(e.share.Due, e.id)
	old, _ = e.share.Elements.Get(e.id)
	c := e.share.write(&s.derived, e.set, e.id, old, true, nftset.Element{}, false)
	if e.set.Merge != nil {
		// A merged range has no timeout: the kernel has it already.
		_, c.had = e.set.Merge.Get(e.id)
		c.has = c.has && !c.had
	}
	if !c.has || c.from == c.to {
		return old, false
	}
	s.Mark(e.set)
	if e.set.Touched == nil {
		e.set.Touched = map[string]Touch{}
	}
	e.set.Touched[e.id] = Touch{Origin: -1}
	return old, true
}

// ExpireAt notes an expiry. One entry in the queue suffices: Expire puts it back for a later time.
func (x *expiries) ExpireAt(o *Set, sh *SetShare, id string, d Due) {
	if sh.Due == nil {
		sh.Due = map[string]Due{}
	}
	if d.queued == 0 || d.At < d.queued {
		if len(x.Queue) >= max(x.most, FewExpiries) {
			x.Queue = slices.DeleteFunc(x.Queue, func(e expiry) bool { return !e.live() })
			heap.Init(&x.Queue)
			x.most = 2 * len(x.Queue)
		}
		d.queued = d.At
		heap.Push(&x.Queue, expiry{at: d.At, set: o, share: sh, id: id})
	}
	sh.Due[id] = d
}

// expiry returns when an element expires, or 0; sh may be nil.
func (sh *SetShare) expiry(id string) time.Duration {
	if sh == nil {
		return 0
	}
	return sh.Due[id].At
}

// restate notes a fragment's statement of an element with a timeout, or (has is false) its end,
// with journal.
func (sh *SetShare) restate(s *State, o *Set, id string, has bool) {
	d, had := sh.Due[id]
	if !had && !has {
		return
	}
	if !had {
		id = strings.Clone(id)
	}
	if sh.Due == nil {
		sh.Due = map[string]Due{}
	}
	n := len(s.Expiries.stated)
	setKey(sh.Due, id, Due{queued: d.queued}, has)
	if has {
		s.Expiries.stated = append(s.Expiries.stated, expiry{set: o, share: sh, id: id})
	}
	s.onUndo(func() {
		setKey(sh.Due, id, d, had)
		s.Expiries.stated = s.Expiries.stated[:n]
	})
}

func (sh *SetShare) restateAll(s *State, o *Set) {
	if sh.Decl.Flags&nftset.FlagTimeout == 0 {
		return
	}
	n := len(s.Expiries.stated)
	s.Expiries.stated = append(s.Expiries.stated, expiry{set: o, share: sh, all: true})
	s.onUndo(func() { s.Expiries.stated = s.Expiries.stated[:n] })
}

// AcceptTimes starts the time of new statements.
func (x *expiries) AcceptTimes() {
	begin := func(o *Set, sh *SetShare, id string, e *nftset.Element) {
		if Timed(sh.Decl, e) {
			left := e.Expires()
			if left == 0 {
				left = packed.Timeout(sh.Decl, e)
			}
			x.ExpireAt(o, sh, id, Due{x.Deadline(left), sh.Due[id].queued})
		}
	}
	for _, st := range x.stated {
		if !slices.Contains(st.set.Shares, st.share) {
			continue
		}
		if st.all {
			for id, e := range st.share.Elements.All() {
				begin(st.set, st.share, strings.Clone(id), &e)
			}
		} else if e, ok := st.share.Elements.Get(st.id); ok && st.share.Due[st.id].At == 0 {
			begin(st.set, st.share, st.id, &e)
		}
	}
}

// Deadline returns when the kernel has surely removed an element with the time left.
func (x *expiries) Deadline(left time.Duration) time.Duration {
	return x.Now + left + ExpiryMargin
}

// Rest returns a statement with its remaining time.
func (x *expiries) Rest(sh *SetShare, id string, e nftset.Element) nftset.Element {
	if at := sh.expiry(id); at != 0 {
		e.State = nftset.NewState(max(at-ExpiryMargin-x.Now, packed.Jiffy).Truncate(time.Millisecond), e.Stateful())
	}
	return e
}

// Renews reports whether the kernel's element stays with another time.
func (t *Touch) Renews(d *nftset.Set, sh *SetShare, id string, e *nftset.Element) bool {
	at := sh.expiry(id)
	return Timed(d, e) && (at == 0 || at != t.Due)
}

// Lags reports whether the kernel's deadline differs.
func (x *expiries) Lags(sh *SetShare, id string, left time.Duration) bool {
	at := sh.expiry(id)
	return at != 0 && left != 0 && (x.Deadline(left)-at).Abs() > expirySlack
}
