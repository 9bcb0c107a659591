package main

import (
	"testing"

	"sigs.k8s.io/network-policy-api/conformance/tests"
)

// TestNeedSCTP checks that the suite has the tests that are left out.
func TestNeedSCTP(t *testing.T) {
	known := map[string]bool{}
	for _, c := range tests.ConformanceTests {
		known[c.ShortName] = true
	}
	if len(known) != 24 {
		t.Errorf("the suite has %d tests: look for new ones that need SCTP", len(known))
	}
	for _, n := range needSCTP {
		if !known[n.test] {
			t.Errorf("the suite has no test %s", n.test)
		}
	}
}

func TestServesSCTP(t *testing.T) {
	container := func(name string) any {
		return map[string]any{"name": "a", "env": []any{map[string]any{"name": name, "value": "foo"}}}
	}
	if !servesSCTP(container("SERVE_SCTP_PORT_9003")) || servesSCTP(container("SERVE_PORT_80")) || servesSCTP(map[string]any{"name": "a"}) {
		t.Error("wrong containers serve SCTP")
	}
}
