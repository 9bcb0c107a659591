package aggregator

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/status"
)

// FuzzRecord adopts arbitrary records, on a kernel that has nothing: no panic, and
// nothing to be changed.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"desired":{"fragments":[
{"publisher":"p","name":"f","priority":-1,"lifetime":"durable","tables":[{"family":"ip","name":"t","chains":[{"name":"c","sets":["s"],"chains":["d"]}],"sets":[{"name":"s","conntrack":true}]}]}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r statedir.Record
		if json.Unmarshal(b, &r) != nil {
			return
		}
		state := merge.New()
		adopt.Dump(state, nil, r.Desired)
		status.NewFragments().Adopt(state, 7, time.Unix(0, 0))
		if plan := planner.Make(state); len(plan.Ops) > 0 {
			t.Fatalf("adopting a record alone plans %v", plan.Ops)
		}
	})
}
