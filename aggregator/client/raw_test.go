package client_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/aggregatortest"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// TestStream sends one update of each kind, a large one, and one that no message
// can hold: acknowledgements come in order, and the stream goes on.
func TestStream(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	c := d.Dial(t, "tester")
	s, err := c.OpenStream(aggregatortest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := newPublisher()
	for i := range 10_000 {
		p.want[fmt.Sprintf("10.0.%d.%d", i>>8, i&255)] = true
	}
	if err := s.Put(1, p.fragment("list")); err != nil {
		t.Fatal(err)
	}
	large := p.change("list", "", "")
	large.Tables[0].Elements[0].Add = []*weftv1.Element{{Key: strings.Repeat("x", client.MaxMessage)}}
	if err := s.Patch(2, large); !errors.Is(err, client.ErrTooLarge) {
		t.Fatalf("a patch that is too large: %v", err)
	}
	if err := s.Patch(3, p.change("list", "10.9.9.9", "10.0.0.0")); err != nil {
		t.Fatal(err)
	}
	if err := s.Patch(4, p.change("other", "10.9.9.9", "")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		id       uint64
		rejected bool
	}{{1, false}, {3, false}, {4, true}} {
		resp, err := s.Recv()
		if err != nil || resp.GetId() != want.id || (resp.GetRejected() != nil) != want.rejected {
			t.Fatalf("answer %v, %v: want that of %d, rejected %v", resp, err, want.id, want.rejected)
		}
	}
	if got := k.Elements(demo, "blocked"); len(got) != 10_000 || !slices.Contains(got, "10.9.9.9") || slices.Contains(got, "10.0.0.0") {
		t.Errorf("%d elements", len(got))
	}
	if err := s.Withdraw(5, "list"); err != nil {
		t.Fatal(err)
	}
	if resp, err := s.Recv(); err != nil || resp.GetId() != 5 || resp.GetCommitted() == nil {
		t.Fatalf("answer %v, %v", resp, err)
	}
	if got := k.Elements(demo, "blocked"); got != nil {
		t.Errorf("elements %v after the withdrawal", got)
	}
}

// TestStreamEnds has streams end from either side.
func TestStreamEnds(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	open := func(c *client.Client) *client.Stream {
		t.Helper()
		s, err := c.OpenStream(aggregatortest.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	closed := d.Dial(t, "tester")
	s := open(closed)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); !errors.Is(err, client.ErrClosed) {
		t.Errorf("the client was closed: %v", err)
	}
	s = open(d.Dial(t, "tester"))
	s.Close()
	if _, err := s.Recv(); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("the stream was closed: %v", err)
	}
	s = open(d.Dial(t, "tester"))
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("the aggregator stopped: %v", err)
	}
}
