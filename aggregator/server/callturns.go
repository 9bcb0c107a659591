package server

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/turns"
)

type callTurns struct {
	*turns.Turns
	// administrators take turns too
	administrators bool
}

// newCallTurns returns the turns by method. Administrators plan and read the history without turns,
// because several of their tools may do so at once.
func newCallTurns() map[string]callTurns {
	return map[string]callTurns{
		weftv1.Flows_ListFlows_FullMethodName:          {turns.New("lists flows"), true},
		weftv1.Flows_DeleteFlows_FullMethodName:        {turns.New("deletes flows"), true},
		weftv1.Publisher_Plan_FullMethodName:           {turns.New("plans"), false},
		weftv1.History_ListRevisions_FullMethodName:    {turns.New("lists revisions"), false},
		weftv1.History_CompareRevisions_FullMethodName: {turns.New("compares revisions"), false},
	}
}
