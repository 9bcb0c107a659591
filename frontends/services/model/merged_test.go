package model

import (
	"fmt"
	"maps"
	"testing"
)

// merges returns the merged lists that are kept of the Service web.
func (m *Model) merges() map[source]string {
	if r := m.records[key("web")]; r != nil {
		return maps.Clone(r.merged)
	}
	return nil
}

// TestSmallKeepsNothing: merged lists are kept only for a large Service and its present ports.
func TestSmallKeepsNothing(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	m.SetService(svc("web", "10.96.0.1", 80, 81))
	set := func(n int) {
		e := eps("a", "web")
		for i := range n {
			e.Endpoints = append(e.Endpoints, ep(fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)))
		}
		m.SetSlice(e)
		m.Refresh()
	}
	for _, tt := range []struct{ endpoints, lists int }{{100, 0}, {600, 2}, {300, 2}, {127, 0}, {600, 2}} {
		if set(tt.endpoints); len(m.merges()) != tt.lists {
			t.Errorf("%d endpoints: %d lists, want %d", tt.endpoints, len(m.merges()), tt.lists)
		}
	}
	m.SetService(svc("web", "10.96.0.1", 80))
	if m.Refresh(); len(m.merges()) != 1 {
		t.Errorf("%d lists for one port", len(m.merges()))
	}
	m.DeleteService(key("web"))
	if m.Refresh(); len(m.merges()) != 0 {
		t.Error("a Service that is gone is kept")
	}
}
