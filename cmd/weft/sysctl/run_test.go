package sysctl

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait: without nf_conntrack Run waits for it, and does not fail.
//
// Behaviour: 156.
func TestAwait(t *testing.T) {
	synctest.Test(t, testAwait)
}

func testAwait(t *testing.T) {
	root, done := t.TempDir(), make(chan error, 1)
	var log bytes.Buffer
	cfg := Config{Conntrack: full(), Root: root, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	go func() { done <- Run(t.Context(), cfg) }()
	<-time.After(2*recheck + recheck/2)
	for name, value := range contents(t, fakeRoot(t)) {
		if name != maxFile {
			put(t, root, name, value)
		}
	}
	// The one that is looked for comes last, and at once.
	put(t, root, "new", "65536")
	must(t, os.Rename(filepath.Join(root, "new"), filepath.Join(root, maxFile)))
	must(t, <-done)
	if got, err := readInt(filepath.Join(root, maxFile)); err != nil || got != 200000 {
		t.Errorf("limit %d, %v: want 200000", got, err)
	}
	if n := strings.Count(log.String(), "not loaded"); n != 1 {
		t.Errorf("the log says %d times that nf_conntrack is missing: want once\n%s", n, &log)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg.Root = t.TempDir()
	if err := Run(ctx, cfg); err != nil {
		t.Errorf("the end of the context gives %v", err)
	}
	cfg.Once = true
	if err := Run(t.Context(), cfg); err != nil {
		t.Errorf("once, without nf_conntrack: %v", err)
	}
}

// TestRefused: what cannot be written is a warning with the file and the value, and
// the rest is done.
//
// Behaviour: 154, 156.
func TestRefused(t *testing.T) {
	root := fakeRoot(t)
	// Root may write every file, so this one is none.
	path := filepath.Join(root, netfilterDir, "nf_conntrack_tcp_timeout_established")
	must(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
	put(t, root, hashFile, "many")
	var log bytes.Buffer
	must(t, Run(t.Context(), Config{Conntrack: full(), Root: root, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
	for _, want := range []string{
		"file=/" + netfilterDir + "/nf_conntrack_tcp_timeout_established want=86400", "file=/" + hashFile + " want=50000",
		"file=/" + netfilterDir + "/nf_conntrack_udp_timeout_stream value=90 before=120",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 2 {
		t.Errorf("%d warnings: want two\n%s", n, &log)
	}
}
