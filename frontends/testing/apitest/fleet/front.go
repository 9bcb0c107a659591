package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const copySize = 2 << 10

// front is a counting reverse proxy.
type front struct {
	handler http.Handler
	// requests, refused connections, and currently open watches
	arrived, refused, watches atomic.Int64

	mu sync.Mutex
	// nil while closed
	server *http.Server
	pipes  *pipes
}

func newFront(cfg config) (*front, error) {
	target, err := url.Parse(cfg.server)
	if err != nil {
		return nil, fmt.Errorf("-server: %w", err)
	}
	pem, err := os.ReadFile(cfg.ca)
	if err != nil {
		return nil, fmt.Errorf("-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("-ca: %s has no certificate", cfg.ca)
	}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(target)
			q.Out.Header.Set("Authorization", "Bearer "+cfg.token)
		},
		FlushInterval: -1, BufferPool: buffers{}, ErrorLog: log.New(discard{}, "", 0),
	}
	f := &front{}
	f.handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		f.arrived.Add(1)
		if q.URL.Query().Get("watch") != "" {
			w = &watchWriter{ResponseWriter: w, open: &f.watches}
			defer w.(*watchWriter).end()
		}
		proxy.ServeHTTP(w, q)
	})
	return f, nil
}

func (f *front) open() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil {
		return
	}
	f.pipes = newPipes()
	f.server = &http.Server{Handler: f.handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(discard{}, "", 0)}
	go func(s *http.Server, p *pipes) { _ = s.Serve(p) }(f.server, f.pipes)
}

func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil {
		_ = f.server.Close()
		f.server, f.pipes = nil, nil
	}
}

func (f *front) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	f.mu.Lock()
	p := f.pipes
	f.mu.Unlock()
	if p == nil {
		f.refused.Add(1)
		return nil, syscall.ECONNREFUSED
	}
	return p.dial(ctx)
}

// Only successful watches count.
type watchWriter struct {
	http.ResponseWriter
	open    *atomic.Int64
	counted bool
}

func (w *watchWriter) WriteHeader(code int) {
	if code == http.StatusOK && !w.counted {
		w.counted = true
		w.open.Add(1)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *watchWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watchWriter) end() {
	if w.counted {
		w.open.Add(-1)
	}
}

type buffers struct{}

func (buffers) Get() []byte { return make([]byte, copySize) }

func (buffers) Put([]byte) {}

// Connections end by intention.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
