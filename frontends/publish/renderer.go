package publish

import (
	"errors"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// Change is the change of one item. Old is the value in force, New the wanted one; nil
// means that the item does not exist.
type Change[K comparable, V any] struct {
	Key      K
	Old, New *V
}

// Update is what the Renderer has for the aggregator.
type Update struct {
	// Patch leads from the content before to the present one. It is nil if nothing
	// changed, or if Snapshot is true.
	Patch *weftv1.Patch
	// Snapshot is true if no patch can carry the change.
	Snapshot bool
	// Added and Removed count elements, for the log.
	Added, Removed int
}

// Empty reports whether there is nothing to send.
func (u *Update) Empty() bool { return u.Patch == nil && !u.Snapshot }

// Renderer is the content of a frontend's fragment.
type Renderer[K comparable, V any] interface {
	// Refresh returns the items whose wanted value changed since the last call, and
	// whether anything else did, which the next Render includes. It calls Publisher.Want with
	// the items. A value must not be modified afterwards.
	Refresh() (items []Change[K, V], other bool)
	// Value returns the wanted value of an item at the last Refresh, nil if it does not
	// exist.
	Value(key K) *V
	// Render makes items what their New is, whatever they were rendered as. If patch
	// is false, a snapshot follows, and the result is not used.
	Render(items []Change[K, V], patch bool) Update
	// LeftOut returns the items that the last Render left out because they cannot be rendered,
	// and why. The caller does not modify it.
	LeftOut() map[K]error
	// Size returns about how much a value adds to the content: more for a larger one.
	Size(value *V) int
	// Snapshot returns the whole content. It is safe for concurrent use.
	Snapshot() *weftv1.Fragment
	// Owner returns the item that an object of a violation belongs to, such as
	// "element ip weft endpoints { 10.96.0.1 . tcp . 80 . 3 }".
	Owner(object *weftv1.ObjectName) (key K, ok bool)
	// Restore adopts the fragment that an earlier process left, before the first
	// Refresh.
	Restore(f *weftv1.Fragment)
}

// Cleaner is implemented by a Renderer that leaves objects without a use in place for a
// while.
type Cleaner interface {
	// Idle reports whether there are objects without a use.
	Idle() bool
	// Cleanup returns the patch that removes them, or some if there are very many, nil if there
	// are none.
	Cleanup() *weftv1.Patch
}

// Staged is implemented by a Renderer whose content needs several updates, one after the
// other, because the kernel puts the parts of one update in force in an order of its own:
// for example first a set with its elements, and then the rules that name it.
type Staged[K comparable] interface {
	// Pending reports whether Render without items has something to send, once the update
	// before is committed. That update follows at once, together with what changed
	// meanwhile, and Config.MinInterval does not apply.
	Pending() bool
	// Waits reports whether an item that is rendered needs another update to be in force.
	Waits(key K) bool
}

// Parts is implemented by a Renderer whose fragment consists of parts that can be left as
// they are.
type Parts[V any] interface {
	// Part returns the part that an object of a violation is, or is in.
	Part(object *weftv1.ObjectName) (name string, ok bool)
	// Freeze leaves a part as it is in the committed fragment, which is nil if there is
	// none. It reports whether the Renderer has items in the part: if it has none, the
	// frozen part does not count as waiting.
	Freeze(part string, committed *weftv1.Fragment) bool
	// Uses reports whether a value has something in a part.
	Uses(part string, value *V) bool
	// Thaw ends Freeze. A snapshot follows.
	Thaw(part string)
}

// Divisible is implemented by a Renderer of items that take things over from each other, such as
// an address, or that can be so large that one item needs several updates.
type Divisible[K comparable, V any] interface {
	// Divide returns the changes that the next update has, at least one, up to about a size, and
	// those that follow it. An item may be in both: its New in now and Old in later is then a value
	// between. What an item takes over from another changes in one update.
	Divide(all []Change[K, V], most int) (now, later []Change[K, V])
}

// Observer is told what happens. It is called by the goroutine of Run, and must not
// block.
type Observer[K comparable, V any] interface {
	// Sent is called after each update was answered, or failed.
	Sent(s Sent)
	// Committed receives the items whose present value is in force now. New is nil for one
	// that is left out.
	Committed(items []Change[K, V])
	// Refused receives items that are refused or left out now, or for another reason than
	// before, or not any more: see Publisher.Outcome.
	Refused(keys []K)
	// Answered is called when everything known is in force. since is when the oldest
	// event arrived. committed is the time of the last commit, zero if none was needed.
	Answered(since, committed time.Time)
}

// Sent is an update that was answered, or that failed.
type Sent struct {
	Snapshot bool
	// Cleanup is true for a patch of Cleaner.
	Cleanup bool
	// Revision is that of the commit. Err is nil if there was one.
	Revision uint64
	Err      error
	// Wait is the time from sending the update to its answer, Total the time from the start
	// of rendering.
	Wait, Total time.Duration
}

// Rejected reports whether the aggregator rejected the update.
func (s *Sent) Rejected() bool {
	_, rejected := errors.AsType[*client.RejectedError](s.Err)
	return rejected
}
