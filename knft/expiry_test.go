package knft

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
)

// TestDeadlines: an element keeps its deadline while it is stated alike, and gets another with another timeout.
func TestDeadlines(t *testing.T) {
	s, err := newSet(nft.FamilyIP, &weftv1.Set{Name: "s", Type: "ipv4_addr", Flags: []string{"timeout"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.id("10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1000, 0)
	for _, step := range []struct {
		timeout, after, want time.Duration
	}{{10 * time.Second, 0, 10 * time.Second}, {10 * time.Second, 5 * time.Second, 10 * time.Second}, {time.Hour, 6 * time.Second, time.Hour + 6*time.Second}} {
		s.elements[id] = &weftv1.Element{Key: "10.0.0.1", Timeout: durationpb.New(step.timeout)}
		s.start(id, began.Add(step.after))
		if got := s.deadlines[id].at.Sub(began) - margin; got != step.want {
			t.Errorf("timeout %v after %v ends after %v, want %v", step.timeout, step.after, got, step.want)
		}
	}
	delete(s.elements, id)
	if s.start(id, began); len(s.deadlines) != 0 {
		t.Errorf("an element that is gone has the deadline %v", s.deadlines[id])
	}
}
