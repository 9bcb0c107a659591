package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// maxTriggers bounds the triggers between two Refreshes.
const maxTriggers = 1 << 14

type triggers struct {
	started int64
	count   int
	of      map[Key][]Trigger
}

// triggerOf returns nanoseconds, or 0 if the annotation is missing or invalid (rule 158).
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

// collect keeps the trigger of a changed slice if it is new, because slices keep their annotations.
func (t *triggers) collect(was, now *slice) {
	if now.trigger <= t.started || was != nil && was.trigger == now.trigger || t.count >= maxTriggers {
		return
	}
	t.of[now.of.key] = append(t.of[now.of.key], Trigger{At: time.Unix(0, now.trigger).UTC(), Family: now.family})
	t.count++
}

func (t *triggers) clear() {
	if t.count > 0 {
		t.of, t.count = make(map[Key][]Trigger), 0
	}
}
