package source

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKubeUnreachable has an API server that is not there, then is, then is not:
// it is told, and does not hold up the end.
func TestKubeUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: "http://%s"}}], contexts: [{name: c, context: {cluster: c}}]}`, address)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, logger := newLog()
	k, err := NewKube(KubeConfig{Kubeconfig: path, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	subscribe(t, k, newRecorder())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	log.await(t, "the Kubernetes API does not answer")
	log.await(t, "connection refused")
	if l, err = net.Listen("tcp", address); err != nil {
		t.Skipf("port is taken by another process: %v", err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.NotFoundHandler()}} //nolint:gosec // a test
	srv.Start()
	log.await(t, "the Kubernetes API answers again")
	srv.Close()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the source does not end")
	}
}
