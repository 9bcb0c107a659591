package aggregator

import (
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/message"
)

// TestPlanInParts divides the changes of a plan by size, and loses none.
func TestPlanInParts(t *testing.T) {
	a, err := New(Config{Kernel: idle{}})
	if err != nil {
		t.Fatal(err)
	}
	const elements = 1000
	set := &weftv1.Set{Name: "s", Type: "inet_service"}
	for i := range elements {
		set.Elements = append(set.Elements, &weftv1.Element{Key: strconv.Itoa(1000 + i)})
	}
	p := a.newPlanning("p", &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{
		{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "t", Sets: []*weftv1.Set{set}}}},
	}})
	if err := a.writer.plan(p); err != nil {
		t.Fatal(err)
	}
	const objects = 2 // the table and the set
	for _, limit := range []int{1, 100, 10_000, message.PartBytes} {
		whole, n := &weftv1.PlanResponse{}, 0
		for part := range p.outcome().Parts(limit) {
			if size := proto.Size(part); size > limit+1000 {
				t.Errorf("limit of %d bytes: part %d has %d", limit, n, size)
			}
			n++
			proto.Merge(whole, part)
		}
		if got := len(whole.GetChanges()); got != objects+elements {
			t.Errorf("limit of %d bytes: %d changes: want %d", limit, got, objects+elements)
		}
		if (n == 1) != (limit == message.PartBytes) {
			t.Errorf("limit of %d bytes: %d parts", limit, n)
		}
		if whole.GetCounts().GetElementsAdded() != elements {
			t.Errorf("limit of %d bytes: counts are %v: want all", limit, whole.GetCounts())
		}
	}
	if got := views.Fragments(a.writer.state); len(got) != 0 {
		t.Errorf("the plan left fragments %v", got)
	}
	if message.Name(desired.Key{}) != nil {
		t.Error("nobody has a name")
	}
}
