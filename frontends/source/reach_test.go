package source

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestKubeUnreachable has an API server that is not there, then is, then is not:
// it is told, and does not hold up the end.
func TestKubeUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	log, logger := newLog()
	k, err := NewKube(KubeConfig{Kubeconfig: kubeconfig(t, "http://"+address), Logger: logger})
	must(t, err)
	subscribe(t, k, newRecorder())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	log.await(t, "the Kubernetes API does not answer")
	log.await(t, "connection refused")
	if err := k.Reachable(); err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("reachable: %v", err)
	}
	if l, err = net.Listen("tcp", address); err != nil {
		t.Skipf("port is taken by another process: %v", err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.NotFoundHandler()}} //nolint:gosec // a test
	srv.Start()
	log.await(t, "the Kubernetes API answers again")
	// It answers, but does not have what is required.
	aggregatortest.Eventually(t, "could not find", func() bool {
		err := k.Reachable()
		return err != nil && strings.Contains(err.Error(), "could not find")
	})
	srv.Close()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended: %v", err)
		}
	case <-time.After(3 * time.Minute):
		t.Fatal("the source does not end")
	}
}

// TestReachNotes tells apart what a server answers.
func TestReachNotes(t *testing.T) {
	_, logger := newLog()
	r := newReach("https://192.0.2.1", logger)
	for _, tt := range []struct {
		status int
		err    error
		want   string
	}{
		{http.StatusOK, nil, ""},
		{http.StatusUnauthorized, nil, "it refuses the credentials: status 401 Unauthorized"},
		{http.StatusForbidden, nil, ""},
		{http.StatusServiceUnavailable, nil, "status 503 Service Unavailable"},
		{0, context.Canceled, "status 503 Service Unavailable"},
		{0, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded.Error()},
		{http.StatusNotFound, nil, ""},
	} {
		r.note(&http.Response{StatusCode: tt.status, Status: fmt.Sprintf("%d %s", tt.status, http.StatusText(tt.status))}, tt.err)
		got := ""
		if err := r.current(); err != nil {
			got = err.Error()
		}
		if got != tt.want || (r.again() == nil) != (tt.want == "") {
			t.Errorf("after %d, %v: %q, want %q", tt.status, tt.err, got, tt.want)
		}
	}
}
