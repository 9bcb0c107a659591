package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestRate: a stream waits for its turn, and nothing of it is lost; a call that
// would have to wait long is told to come back.
func TestRate(t *testing.T) {
	const rate, updates = 20, 6
	d := startConfigured(t, fmt.Sprintf("publishers: [{name: one, match: {uid: 4001}, limits: {updatesPerSecond: %d, burst: 1}}]\n", rate))
	conn := dial(t, d.Socket)
	s := publish(t, conn, "one")
	began := time.Now()
	for i := range uint64(updates) {
		f := fragment("one")
		f.Name = fmt.Sprintf("f%d", i)
		// In two parts, which count once.
		first := snapshot(i, f)
		first.More = true
		if err := s.Send(first); err != nil {
			t.Fatal(err)
		}
		if err := s.Send(snapshot(i, &weftv1.Fragment{Name: f.Name})); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(updates) {
		resp, err := s.Recv()
		if err != nil || resp.GetId() != i || resp.GetCommitted() == nil {
			t.Fatalf("update %d: %v, error %v", i, resp, err)
		}
	}
	if took, least := time.Since(began), time.Second*(updates-1)/rate; took < least {
		t.Errorf("%d updates took %v: want at least %v", updates, took, least)
	}

	// One in a thousand seconds: the next has to wait.
	d.reload(t, "publishers: [{name: one, match: {uid: 4001}, limits: {updatesPerSecond: 0.001}}]\n")
	api := newAPI(conn)
	ctx := as(aggregatortest.Context(t), "one")
	var err error
	for range 3 {
		if _, err = api.Apply(ctx, &weftv1.ApplyRequest{Fragment: fragment("one")}); err != nil {
			break
		}
	}
	wantCode(t, err, codes.ResourceExhausted, "0.001 a second are allowed, and 1 at once: retry in ")
	if details := status.Convert(err).Details(); len(details) != 2 {
		t.Errorf("details %v", details)
	}
	if _, err := api.List(ctx, &weftv1.ListFragmentsRequest{}); err != nil {
		t.Errorf("a message that is not an update: %v", err)
	}
	// A stream that waits goes on with another rate.
	if err := s.Send(snapshot(100, fragment("one"))); err != nil {
		t.Fatal(err)
	}
	d.reload(t, "publishers: [{name: one, match: {uid: 4001}}]\n")
	resp, err := s.Recv()
	if err != nil || resp.GetId() != 100 || resp.GetCommitted() == nil {
		t.Fatalf("the update that waited: %v, error %v", resp, err)
	}
	if !strings.Contains(d.log.String(), "limit=updatesPerSecond") {
		t.Errorf("log %s", d.log.String())
	}
}

// TestStopDoesNotWaitForThePaced: the daemon stops while a stream waits.
func TestStopDoesNotWaitForThePaced(t *testing.T) {
	d := startConfigured(t, "publishers: [{name: one, match: {uid: 4001}, limits: {updatesPerSecond: 0.001}}]\n")
	s := publish(t, dial(t, d.Socket), "one")
	committed(t, s, 1, fragment("one"))
	if err := s.Send(snapshot(2, fragment("one"))); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- d.Stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(aggregatortest.Wait):
		t.Fatal("the daemon does not stop")
	}
	_, err := s.Recv()
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
}
