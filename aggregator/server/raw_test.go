package server_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// unlimited starts a daemon without a commit rate: what is measured is what
// callers do to each other.
func unlimited(t testing.TB) *aggregatortest.Daemon {
	return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Rate: rate.Inf, Burst: 1}})
}

// neighbour is a well-behaved publisher beside the others.
type neighbour struct{ session *client.Session }

func newNeighbour(t testing.TB, d *aggregatortest.Daemon) *neighbour {
	s := d.Dial(t, "neighbour").Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return neighbourFragment() }})
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Put(aggregatortest.Context(t), neighbourFragment()); err != nil {
		t.Fatal(err)
	}
	return &neighbour{s}
}

func neighbourFragment() *weftv1.Fragment {
	f := table()
	f.Name, f.Tables[0].Name = "beside", "beside"
	return f
}

// works makes updates and says how long they took. One that waits for somebody else fails.
func (n *neighbour) works(t testing.TB, when string) {
	t.Helper()
	ctx := aggregatortest.Context(t)
	var took []time.Duration
	for i := range 50 {
		began := time.Now()
		_, err := n.session.Patch(ctx, &weftv1.Patch{Fragment: "beside", Tables: []*weftv1.TablePatch{{Family: "inet", Name: "beside", Elements: []*weftv1.ElementPatch{{
			Set: "blocked", Add: []*weftv1.Element{{Key: fmt.Sprintf("10.1.0.%d", i)}}, Remove: []string{fmt.Sprintf("10.1.0.%d", i-1)},
		}}}}})
		if i == 0 {
			// There is no 10.1.0.-1.
			continue
		}
		if err != nil {
			t.Fatalf("%s: update %d of the neighbour: %v", when, i, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%s: updates of the neighbour take %v (median), %v (99 %%), %v (most)", when, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}
