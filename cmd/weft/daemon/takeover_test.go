package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
)

// TestSuccessor removes kube-proxy's rules when weft's are in force and kube-proxy has ended,
// not before; it tries again after an error, and notices rules that come again.
func TestSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, events strings.Builder
		// mu guards what the steps below change.
		var mu sync.Mutex
		var ready, running, failure error
		var rules []string
		locked := func(err *error) error {
			mu.Lock()
			defer mu.Unlock()
			return *err
		}
		removals := 0
		s := &successor{
			ready: func() error { return locked(&ready) }, running: func() error { return locked(&running) },
			remove: func(context.Context, bool) (takeover.Report, error) {
				removals++
				if err := locked(&failure); err != nil {
					return takeover.Report{}, err
				}
				return takeover.Report{Removed: []string{"table ip kube-proxy"}, Notices: []string{"chain KUBE-MARK-MASQ stays"}}, nil
			},
			find: func(context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				return rules, nil
			},
			event: func(kind, reason, message string) { events.WriteString(kind + " " + reason + " " + message) },
			log:   slog.New(slog.NewTextHandler(&log, nil)),
		}
		condition := func() string {
			synctest.Wait()
			if err := s.failing(); err != nil {
				return err.Error()
			}
			return ""
		}
		ready, running = errors.New("not published yet"), errors.New("address already in use")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.run(ctx) }()
		steps := []struct {
			what string
			do   func()
			want string
		}{
			{"at the start", func() {}, "stay until those of weft are in force: not published yet"},
			{"beside kube-proxy", func() { ready = nil }, "stay until it has ended: address already in use"},
			{"without it", func() { running, failure = nil, errors.New("no permission") }, "no permission"},
			{"at last", func() { failure = nil }, ""},
			{"later", func() { rules = []string{"table ip kube-proxy"} }, "kube-proxy has written rules again"},
			{"at the end", func() { rules = nil }, ""},
		}
		for _, step := range steps {
			mu.Lock()
			step.do()
			mu.Unlock()
			<-time.After(takeoverWatch + takeoverRetry)
			if got := condition(); !strings.Contains(got, step.want) || step.want == "" && got != "" {
				t.Errorf("%s: the condition is %q, want %q", step.what, got, step.want)
			}
		}
		cancel()
		<-done
		if got, want := events.String(), "Normal WeftTookOver removed what kube-proxy left: table ip kube-proxy"; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
		if text := log.String(); strings.Count(text, "stay for now") != 3 || strings.Count(text, "MARK-MASQ") != 1 || removals < 2 {
			t.Errorf("%d removals, and the log is\n%s", removals, text)
		}
	})
}
