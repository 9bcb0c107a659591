package server

import (
	"maps"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestCallsWithTurns says which calls have turns, and whether administrators have them too.
func TestCallsWithTurns(t *testing.T) {
	got := map[string]bool{}
	for method, turns := range newCallTurns() {
		got[method] = turns.administrators
	}
	want := map[string]bool{
		weftv1.Publisher_Plan_FullMethodName: false, weftv1.History_ListRevisions_FullMethodName: false, weftv1.History_CompareRevisions_FullMethodName: false,
		weftv1.Flows_ListFlows_FullMethodName: true, weftv1.Flows_DeleteFlows_FullMethodName: true,
	}
	if !maps.Equal(got, want) {
		t.Errorf("calls with turns, true if those of administrators too: %v, want %v", got, want)
	}
}
