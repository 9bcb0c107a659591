package publish

import (
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// fragment is what was acknowledged of one fragment, and its state on the
// stream. It is the session's, under its lock.
type fragment struct {
	kept
	// resync is the snapshot on its way that no line asked for.
	resync *resync
	// lost is true while another stream of the publisher has the fragment. Only
	// a snapshot that a line asks for takes it back.
	lost bool
	// refused is why the last resync failed, and retry when the next one is due.
	refused error
	retry   time.Time
}

// resync is a snapshot of a fragment, with the updates of which nobody knows
// whether they were committed before the connection broke.
type resync struct {
	name   string
	covers []*update
	// after is what the fragment holds if it is accepted.
	after kept
}

// kept is the content of a fragment.
type kept struct {
	// base is a snapshot, nil where there is none. Once patches are applied the
	// content stands in its place.
	base    *weftv1.Fragment
	content *content
	// err is why the content is not known.
	err error
}

// there says whether the fragment has a content.
func (k *kept) there() bool { return k.base != nil || k.content != nil || k.err != nil }

// apply makes a committed update part of the content.
func (k *kept) apply(req *weftv1.PublishRequest) {
	patch := req.GetPatch()
	if patch == nil {
		*k = kept{base: req.GetSnapshot()}
		return
	}
	if k.base != nil {
		k.content, k.err = newContent(k.base)
		k.base = nil
	}
	if k.content == nil {
		return
	}
	if err := k.content.patch(patch); err != nil {
		k.content, k.err = nil, err
	}
}

// with returns the content with further updates, which share what it holds but
// change nothing of it.
func (k *kept) with(updates []*update) kept {
	after := *k
	if len(updates) > 0 && after.content != nil {
		after.content = after.content.clone()
	}
	for _, u := range updates {
		after.apply(u.req)
	}
	return after
}

// message returns the content as a snapshot, or nil.
func (k *kept) message(now time.Time) *weftv1.Fragment {
	if k.content != nil {
		return k.content.fragment(now)
	}
	return k.base
}
