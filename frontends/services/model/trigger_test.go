package model

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func triggered(s *discoveryv1.EndpointSlice, when string) *discoveryv1.EndpointSlice {
	s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: when}
	return s
}

// TestTriggers: the times of changes are handed out once, with the Services that
// they changed on this node.
//
// Behaviour: 158.
func TestTriggers(t *testing.T) {
	m := New(Config{Started: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	m.SetService(svc("web", "10.96.0.1", 80))
	m.SetService(svc("other", "10.96.0.2", 80))
	m.Refresh()
	for _, tt := range []struct {
		name string
		do   func()
		want string
	}{
		{"before this process", func() { m.SetSlice(triggered(eps("a", "web", ep("10.1.0.1")), "2025-12-31T23:59:59Z")) }, "[]"},
		{"a change", func() { m.SetSlice(triggered(eps("a", "web", ep("10.1.0.2")), "2026-01-01T00:00:01.5Z")) }, "[1.5s]"},
		{"nothing more", func() {}, "[]"},
		{"a resync", func() { m.SetSlice(triggered(eps("a", "web", ep("10.1.0.2")), "2026-01-01T00:00:01.5Z")) }, "[]"},
		{"a change with the same time", func() { m.SetSlice(triggered(eps("a", "web", ep("10.1.0.3")), "2026-01-01T00:00:01.5Z")) }, "[]"},
		{"several changes, in another zone", func() {
			m.SetSlice(triggered(eps("a", "web", ep("10.1.0.4")), "2026-01-01T02:00:03+02:00"))
			m.SetSlice(triggered(eps("b", "web", ep("10.1.0.5")), "2026-01-01T00:00:04Z"))
			m.SetSlice(triggered(eps("a", "web", ep("10.1.0.6")), "2026-01-01T00:00:05Z"))
			m.SetSlice(triggered(eps("c", "other", ep("10.1.0.7")), "2026-01-01T00:00:06Z"))
		}, "[6s 3s 4s 5s]"},
		{"no change of the endpoints", func() { m.SetSlice(triggered(eps("c", "other", ep("10.1.0.7")), "2026-01-01T00:00:07Z")) }, "[]"},
		{"a change that makes no difference here", func() {
			m.SetSlice(triggered(eps("c", "other", ep("10.1.0.7"), ep("10.1.0.8", conditions(false, false, false))), "2026-01-01T00:00:08Z"))
		}, "[]"},
		{"it is not handed out later", func() { m.SetSlice(eps("d", "other", ep("10.1.0.9"))) }, "[]"},
		{"malformed", func() { m.SetSlice(triggered(eps("c", "other", ep("10.1.0.10")), "yesterday")) }, "[]"},
		{"a Service that is not there", func() { m.SetSlice(triggered(eps("e", "none", ep("10.1.0.1")), "2026-01-01T00:00:09Z")) }, "[]"},
		{"a slice before its Service", func() {
			m.SetSlice(triggered(eps("f", "late", ep("10.1.0.1")), "2026-01-01T00:00:10Z"))
			m.SetService(svc("late", "10.96.0.3", 80))
		}, "[10s]"},
		{"a slice that goes", func() { m.DeleteSlice(key("f")) }, "[]"},
	} {
		tt.do()
		var got []time.Duration
		for _, trigger := range m.Refresh().Triggers {
			got = append(got, trigger.At.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
	if m.Stats().Skipped != 0 {
		t.Error("a malformed trigger time is worth no report")
	}
}

// TestTriggerFamily: a trigger has the family of its slice.
//
// Behaviour: 158.
func TestTriggerFamily(t *testing.T) {
	m := New(Config{Started: time.Unix(0, 0)})
	s := svc("web", "10.96.0.1", 80)
	s.Spec.ClusterIPs = []string{"10.96.0.1", "fd00:10:96::1"}
	m.SetService(s)
	six := eps("a", "web", ep("fd00::1"))
	six.AddressType = discoveryv1.AddressTypeIPv6
	m.SetSlice(triggered(six, "2026-01-01T00:00:01Z"))
	m.SetSlice(triggered(eps("b", "web", ep("10.1.0.1")), "2026-01-01T00:00:02Z"))
	if got := m.Refresh().Triggers; len(got) != 2 || got[0].Family != IPv6 || got[1].Family != IPv4 {
		t.Errorf("triggers %v", got)
	}
}

// TestTriggersAreBounded: while nothing can be published, they do not pile up.
func TestTriggersAreBounded(t *testing.T) {
	m := New(Config{Started: time.Unix(0, 0)})
	m.SetService(svc("web", "10.96.0.1", 80))
	for i := range 2 * maxTriggers {
		when := time.Unix(int64(i+1), 0).UTC().Format(time.RFC3339Nano)
		m.SetSlice(triggered(eps("a", "web", ep(fmt.Sprintf("10.1.0.%d", i%2+1))), when))
	}
	if got := m.Refresh().Triggers; len(got) != maxTriggers || got[0].At.Unix() != 1 {
		t.Errorf("%d triggers from %v, want the first %d", len(got), got[0], maxTriggers)
	}
}

// TestStartedIsNow: without a time to start from, what was there is no news.
func TestStartedIsNow(t *testing.T) {
	before := time.Now().Add(-time.Millisecond).Format(time.RFC3339Nano)
	after := time.Now().Add(time.Hour).Format(time.RFC3339Nano)
	m := New(Config{})
	m.SetService(svc("web", "10.96.0.1", 80))
	m.SetSlice(triggered(eps("a", "web", ep("10.1.0.1")), before))
	m.SetSlice(triggered(eps("b", "web", ep("10.1.0.2")), after))
	if got := m.Refresh().Triggers; len(got) != 1 {
		t.Errorf("triggers %v, want the later one", got)
	}
}
