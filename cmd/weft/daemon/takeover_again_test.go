package daemon

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
)

// TestTakeoverIsSaid has the event that weft migrate waits for name what all attempts removed, and come also
// if an earlier process has removed the rules.
func TestTakeoverIsSaid(t *testing.T) {
	never := func() error { return nil }
	for _, tt := range []struct {
		name     string
		attempts []takeover.Report
		want     string
	}{
		{"nothing is left", []takeover.Report{{}}, "kube-proxy has ended and left no rules"},
		{"two attempts", []takeover.Report{{Removed: []string{"table ip kube-proxy"}}, {Removed: []string{"table ip6 kube-proxy"}}}, "removed what kube-proxy left: table ip kube-proxy; table ip6 kube-proxy"},
	} {
		var events []string
		next := 0
		s := &successor{
			ready: never, running: never, log: slog.New(slog.DiscardHandler),
			event: func(_, _, message string) { events = append(events, message) },
			remove: func(context.Context, bool) (report takeover.Report, err error) {
				if report = tt.attempts[next]; next < len(tt.attempts)-1 {
					err = errors.New("no permission")
				}
				next++
				return report, err
			},
		}
		for range tt.attempts {
			_ = s.take(t.Context()) // all but the last fail
		}
		if len(events) != 1 || events[0] != tt.want {
			t.Errorf("%s: events %q, want %q", tt.name, events, tt.want)
		}
	}
}
