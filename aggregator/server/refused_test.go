package server_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestRefusedCallsLeaveNothing makes calls that are refused and have a deadline in an hour. What
// the server keeps of one until then, if anything, is more than 300 bytes.
func TestRefusedCallsLeaveNothing(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	a := newAPI(dial(t, d.Socket))
	ctx := metadata.AppendToOutgoingContext(aggregatortest.Context(t), server.PublisherKey, "one", server.PublisherKey, "two")
	refused := func() {
		ctx, cancel := context.WithDeadline(ctx, time.Now().Add(time.Hour))
		defer cancel()
		_, err := a.Apply(ctx, &weftv1.ApplyRequest{})
		wantCode(t, err, codes.InvalidArgument, "is given 2 times")
	}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // and what the first one found in pools
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range 100 {
		refused()
	}
	const calls = 5000
	before := live()
	for range calls {
		refused()
	}
	if after := live(); after > before+calls*100 {
		t.Errorf("%d refused calls leave %d bytes", calls, after-before)
	}
}
