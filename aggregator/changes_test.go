package aggregator

import (
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// TestPlanOmitsWhatDoesNotFit lists changes up to a size and counts the rest.
func TestPlanOmitsWhatDoesNotFit(t *testing.T) {
	a, err := New(Config{Kernel: struct{ Kernel }{}})
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
	for _, room := range []int{0, 100, 10_000, admission.MaxPlanBytes} {
		resp := p.message(room)
		listed, size := len(resp.GetChanges()), 0
		for _, c := range resp.GetChanges() {
			size += proto.Size(c)
		}
		if uint64(listed)+resp.GetOmitted() != objects+elements {
			t.Errorf("room for %d bytes: %d changes and %d omitted: want %d together", room, listed, resp.GetOmitted(), objects+elements)
		}
		if size > room || room > 0 && listed == 0 || room == admission.MaxPlanBytes && resp.GetOmitted() > 0 {
			t.Errorf("room for %d bytes: %d changes of %d bytes", room, listed, size)
		}
		if resp.GetCounts().GetElementsAdded() != elements {
			t.Errorf("room for %d bytes: counts are %v: want all", room, resp.GetCounts())
		}
	}
	if got := a.writer.state.Fragments(); len(got) != 0 {
		t.Errorf("the plan left fragments %v", got)
	}
	if fragmentName(desired.Key{}) != "" {
		t.Error("nobody has a name")
	}
}
