package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/nft"
)

// TestHandover ends at once while the node is weft's or while it is not known whose it is. If it is not
// weft's, weft's rules go after those of kube-proxy have been in force for a while, and not before.
func TestHandover(t *testing.T) {
	for name, test := range map[string]struct {
		label    string
		labelErr error
		// looks are the answers of kube-proxy, of which the last one is repeated.
		looks   []error
		cleanup error
		want    []string
		// seconds is the time until the daemon may end.
		seconds int
	}{
		"restart":        {label: takeover.Weft},
		"beside":         {label: takeover.Beside},
		"not known":      {labelErr: errors.New("connection refused"), want: []string{"log weft's rules stay"}},
		"label is gone":  {looks: []error{nil}, want: []string{"WeftHandsOver", "release", "WeftHandedOver", "cleanup", "log are removed"}, seconds: 3},
		"another proxy":  {label: "kube-proxy", looks: []error{nil}, want: []string{"WeftHandsOver", "release", "WeftHandedOver", "cleanup", "log are removed"}, seconds: 3},
		"later":          {looks: []error{errors.New("no answer"), errors.New("no answer"), errors.New("no rules"), nil}, want: []string{"WeftHandsOver", "release", "log no answer", "log no rules", "WeftHandedOver", "cleanup", "log are removed"}, seconds: 6},
		"ends again":     {looks: []error{nil, errors.New("no answer"), nil}, want: []string{"WeftHandsOver", "release", "WeftHandedOver", "log no answer", "WeftHandedOver", "cleanup", "log are removed"}, seconds: 5},
		"cleanup failed": {looks: []error{nil}, cleanup: errors.New("no permission"), want: []string{"WeftHandsOver", "release", "WeftHandedOver", "cleanup", "log run weft cleanup"}, seconds: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var did []string
				var log strings.Builder
				note := func(what string) {
					for line := range strings.Lines(log.String()) {
						did = append(did, "log "+line)
					}
					log.Reset()
					if what != "" {
						did = append(did, what)
					}
				}
				h := &handover{
					label:   func(context.Context) (string, error) { return test.label, test.labelErr },
					release: func() { note("release") },
					inForce: func(context.Context) error {
						err := test.looks[0]
						if len(test.looks) > 1 {
							test.looks = test.looks[1:]
						}
						return err
					},
					cleanup: func(context.Context) ([]nft.TableID, error) { note("cleanup"); return nil, test.cleanup },
					event:   func(_, reason, _ string) { note(reason) },
					log:     slog.New(slog.NewTextHandler(&log, nil)),
				}
				end, ended := make(chan struct{}), make(chan struct{})
				start := time.Now()
				go func() { defer close(ended); h.run(t.Context(), end) }()
				synctest.Wait()
				if len(did) > 0 {
					t.Errorf("before the end: %q", did)
				}
				close(end)
				<-ended
				note("")
				got := slices.DeleteFunc(did, func(what string) bool {
					return strings.Contains(what, "the node is given back: weft's rules are updated")
				})
				if !slices.EqualFunc(got, test.want, func(a, b string) bool {
					b, isLog := strings.CutPrefix(b, "log ")
					return a == b || isLog && strings.Contains(a, b)
				}) {
					t.Errorf("did %q, want %q", got, test.want)
				}
				if took := time.Since(start); took != time.Duration(test.seconds)*handoverPoll {
					t.Errorf("took %v, want %d s", took, test.seconds)
				}
			})
		})
	}
}

// TestHandoverStops ends without a look when another part of the daemon has failed, and when it
// fails during the handover.
func TestHandoverStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		h := &handover{
			label: func(context.Context) (string, error) { return "", nil }, release: func() {},
			inForce: func(context.Context) error { looks++; return errors.New("no answer") },
			cleanup: func(context.Context) ([]nft.TableID, error) { t.Error("weft's rules are removed"); return nil, nil },
			event:   func(string, string, string) {}, log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		end := make(chan struct{})
		running.Go(func() { h.run(ctx, make(chan struct{})) })
		running.Go(func() { h.run(ctx, end) })
		close(end)
		<-time.After(10*handoverPoll + handoverPoll/2)
		cancel()
		running.Wait()
		if looks != 10 {
			t.Errorf("%d looks, want 10 of the one that was to end", looks)
		}
	})
}
