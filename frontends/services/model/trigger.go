package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// maxTriggers bounds the triggers between two calls of Refresh. There are more only if
// nothing can be published for long.
const maxTriggers = 1 << 14

// triggers are those of Services until the next Refresh.
type triggers struct {
	started int64
	count   int
	of      map[Key][]Trigger
}

// triggerOf returns the trigger time of a slice in nanoseconds, 0 if it has none that is
// valid (rule 158).
func triggerOf(o *discoveryv1.EndpointSlice) int64 {
	text, ok := o.Annotations[corev1.EndpointsLastChangeTriggerTime]
	if !ok {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// collect keeps the trigger of a slice that changed, if it is new: a slice keeps its
// annotation, and what existed at the start was not programmed by this process.
func (t *triggers) collect(was, now *slice) {
	if now.trigger <= t.started || was != nil && was.trigger == now.trigger || t.count >= maxTriggers {
		return
	}
	t.of[now.of.key] = append(t.of[now.of.key], Trigger{At: time.Unix(0, now.trigger).UTC(), Family: now.family})
	t.count++
}

// clear removes all.
func (t *triggers) clear() {
	if t.count > 0 {
		t.of, t.count = make(map[Key][]Trigger), 0
	}
}
