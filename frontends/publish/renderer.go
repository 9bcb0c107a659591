package publish

import (
	"errors"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// Change is the change of an item from its value in force to the wanted one. A nil value means no item.
type Change[K comparable, V any] struct {
	Key      K
	Old, New *V
}

// Update is a rendered change.
type Update struct {
	// nil if Snapshot is true or the content did not change
	Patch *weftv1.Patch
	// Snapshot is true if a patch cannot carry the change.
	Snapshot bool
	// elements, for the log
	Added, Removed int
}

func (u *Update) Empty() bool { return u.Patch == nil && !u.Snapshot }

// Renderer provides the content of a frontend's fragment.
type Renderer[K comparable, V any] interface {
	// Refresh returns the items with a new wanted value, and calls Publisher.Want with them. other reports
	// further changes for the next Render. Values must not be modified afterwards.
	Refresh() (items []Change[K, V], other bool)
	// Value returns the item's value at the last Refresh, or nil.
	Value(key K) *V
	// If patch is false, a snapshot follows and the result of Render is unused.
	Render(items []Change[K, V], patch bool) Update
	// LeftOut returns why items have no rendering. The caller must not modify it.
	LeftOut() map[K]error
	// Size returns a value's cost, in the unit of Config.Portion.
	Size(value *V) int
	// Snapshot is safe for concurrent use.
	Snapshot() *weftv1.Fragment
	// Owner returns the item of an object in a violation.
	Owner(object *weftv1.ObjectName) (key K, ok bool)
	// Restore receives the fragment of an earlier process, before the first Refresh.
	Restore(f *weftv1.Fragment)
}

// Cleaner is a Renderer that keeps unused objects for a while.
type Cleaner interface {
	// Idle reports whether Cleanup has objects to remove.
	Idle() bool
	// Cleanup returns the patch that removes unused objects, possibly only some, or nil.
	Cleanup() *weftv1.Patch
}

// Staged is a Renderer that may need several updates, because the kernel applies the parts of an update in
// its own order.
type Staged[K comparable] interface {
	// Pending reports whether a Render without items has more to send after a commit, regardless of
	// Config.MinInterval.
	Pending() bool
	// Waits reports whether a rendered item needs another update.
	Waits(key K) bool
}

// Parts is a Renderer with parts to freeze.
type Parts[V any] interface {
	// Part returns the part of an object.
	Part(object *weftv1.ObjectName) (name string, ok bool)
	// Freeze keeps a part as in the committed fragment, which may be nil. It reports whether the part has
	// items.
	Freeze(part string, committed *weftv1.Fragment) bool
	// Uses reports whether a part has objects of a value.
	Uses(part string, value *V) bool
	// Thaw ends Freeze. A snapshot follows.
	Thaw(part string)
}

// Divisible is a Renderer with items that take objects from each other, or need several updates because of
// their size.
type Divisible[K comparable, V any] interface {
	// Divide returns the changes of the next update, at least one, up to about a size, and the changes after
	// it. An item may be in both, with an intermediate value. A takeover between items is one update.
	Divide(all []Change[K, V], most int) (now, later []Change[K, V])
}

// Observer receives results on Run's goroutine and must not block.
type Observer[K comparable, V any] interface {
	Sent(s Sent)
	// New is nil for a left-out item.
	Committed(items []Change[K, V])
	// The items became refused or left out, changed their reason, or recovered.
	Refused(keys []K)
	// Answered is called when all known changes are in force. since is the oldest event's arrival; committed
	// is the last commit, or zero.
	Answered(since, committed time.Time)
}

// Sent is an update that was answered or failed.
type Sent struct {
	Snapshot bool
	// a patch of Cleaner
	Cleanup bool
	// if Err is nil
	Revision uint64
	Err      error
	// Total includes rendering.
	Wait, Total time.Duration
}

// Rejected reports whether the aggregator rejected the update.
func (s *Sent) Rejected() bool {
	_, rejected := errors.AsType[*client.RejectedError](s.Err)
	return rejected
}
