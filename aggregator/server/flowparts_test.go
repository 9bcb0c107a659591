package server

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/conntrack"
)

var someEntry = &conntrack.Entry{Protocol: 17, Source: netip.MustParseAddrPort("10.0.0.1:4000"), Destination: netip.MustParseAddrPort("10.96.0.10:53"),
	ReplySource: netip.MustParseAddrPort("[fd00::1]:5353"), ReplyDestination: netip.MustParseAddrPort("10.0.0.1:4000")}

// fill adds entries until an error, and returns how many.
func fill(p *flowParts, most int) (int, error) {
	for n := range most {
		if err := p.add(someEntry); err != nil {
			return n, err
		}
	}
	return most, nil
}

// TestReaderPatience has readers of several speeds.
func TestReaderPatience(t *testing.T) {
	const parts = 20
	for _, tt := range []struct {
		name   string
		pause  time.Duration
		want   error
		waited time.Duration
	}{
		{"at once", 0, nil, 0},
		{"fast enough", 200 * time.Millisecond, nil, parts * 200 * time.Millisecond},
		{"a little at a time", time.Second, errSlowReader, readerPatience},
		{"never", time.Hour, errSlowReader, readerPatience},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				sent := 0
				p := sendFlows(ctx, func(resp *weftv1.ListFlowsResponse) error {
					sent += len(resp.GetFlows())
					select {
					case <-time.After(tt.pause):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				began := time.Now()
				_, err := fill(p, parts*flowsOfPart)
				err = p.finish(err)
				if !errors.Is(err, tt.want) || err == nil && sent != parts*flowsOfPart {
					t.Errorf("error %v after %d entries, want %v", err, sent, tt.want)
				}
				if d := time.Since(began); d != tt.waited || p.waited != d {
					t.Errorf("took %v, of which it waited for %v; want %v", d, p.waited, tt.waited)
				}
			})
		})
	}
}

// TestReaderIsGone has readers that end in the middle, and at the end.
func TestReaderIsGone(t *testing.T) {
	gone := errors.New("gone")
	for _, entries := range []int{1, flowsOfPart, 100 * flowsOfPart} {
		synctest.Test(t, func(t *testing.T) {
			p := sendFlows(t.Context(), func(*weftv1.ListFlowsResponse) error { return gone })
			_, err := fill(p, entries)
			if err := p.finish(err); !errors.Is(err, gone) {
				t.Errorf("%d entries: error %v, want that of sending", entries, err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p := sendFlows(ctx, func(*weftv1.ListFlowsResponse) error { <-ctx.Done(); return ctx.Err() })
			time.AfterFunc(time.Second, cancel)
			_, err := fill(p, entries)
			if err := p.finish(err); !errors.Is(err, context.Canceled) {
				t.Errorf("%d entries: error %v, want the context's", entries, err)
			}
		})
	}
}
