package model

import (
	"fmt"
	"testing"
)

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
		set(tt.endpoints)
		if n := len(m.records[key("web")].merged); n != tt.lists {
			t.Errorf("%d endpoints: %d lists, want %d", tt.endpoints, n, tt.lists)
		}
	}
	m.SetService(svc("web", "10.96.0.1", 80))
	m.Refresh()
	if n := len(m.records[key("web")].merged); n != 1 {
		t.Errorf("%d lists for one port", n)
	}
}
