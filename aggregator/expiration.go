package aggregator

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/message"
)

// expirations has the fragments that expire, in the order in which they do.
type expirations struct {
	order []expiration
	timer *time.Timer
}

type expiration struct {
	at  time.Time
	key desired.Key
}

func (e expiration) compare(other expiration) int {
	return cmp.Or(e.at.Compare(other.at), e.key.Compare(other.key))
}

// set changes when a fragment expires; zero means never.
func (e *expirations) set(key desired.Key, before, at time.Time) {
	if i, ok := slices.BinarySearchFunc(e.order, expiration{before, key}, expiration.compare); ok {
		e.order = slices.Delete(e.order, i, i+1)
	}
	if !at.IsZero() {
		i, _ := slices.BinarySearchFunc(e.order, expiration{at, key}, expiration.compare)
		e.order = slices.Insert(e.order, i, expiration{at, key})
	}
}

// clockCheck is the longest time that passes before a step of the machine's clock
// is noticed.
const clockCheck = time.Minute

// due returns a channel that receives when the next fragment may have expired; nil
// if none expires.
func (e *expirations) due(now time.Time) <-chan time.Time {
	if len(e.order) == 0 {
		return nil
	}
	wait := min(e.order[0].at.Sub(now), clockCheck)
	if e.timer == nil {
		e.timer = time.NewTimer(wait)
	} else {
		e.timer.Reset(wait)
	}
	return e.timer.C
}

// expired reports whether a fragment has expired.
func (w *writer) expired(f desired.Status) bool {
	return !f.Expires.IsZero() && !f.Expires.After(w.cfg.Now())
}

// expire has the fragments withdrawn that have expired by now.
func (w *writer) expire() {
	e, now := w.expirations, w.cfg.Now()
	for len(e.order) > 0 && !e.order[0].at.After(now) {
		key := e.order[0].key
		e.order = slices.Delete(e.order, 0, 1)
		if _, ok := w.abandoned[key]; !ok {
			w.abandoned[key] = false
		}
		w.retryAbandoned = true
	}
}

// expiring follows committed updates: it records when their fragments expire, and
// reports those that were withdrawn because they had expired.
func (w *writer) expiring(accepted []*submission) {
	for _, s := range accepted {
		if s.update.Snapshot {
			w.expirations.set(s.key(), s.before, s.update.Expires)
		}
		if s.expired.IsZero() {
			continue
		}
		if owner := w.sessions[s.owner]; owner != nil {
			owner.expired[s.key().Name] = true
		}
		w.log.Info("fragment expired", "fragment", s.key().String(), "expire_time", s.expired, "revision", w.revision)
		w.hub.Publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Expired{Expired: &weftv1.Expired{
			Fragment: message.Name(s.key()), ExpireTime: timestamppb.New(s.expired), Revision: w.revision,
		}}})
	}
}
