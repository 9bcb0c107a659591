package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// memory returns what the process holds, in bytes: the daemon and, beside a few
// bytes for each raw connection, nothing else.
func memory() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse) //nolint:gosec // far below
}

// TestIdleConnections opens 1,000 connections with a stream that never says
// anything.
func TestIdleConnections(t *testing.T) {
	const (
		connections = 1000
		// budget is what one may cost, its stream and its socket's ends in this
		// process included.
		budget = 128 << 10
	)
	d := unlimited(t)
	n := newNeighbour(t, d)
	n.works(t, "alone")
	before := memory()
	var all []*aggregatortest.Raw
	for range connections {
		r := aggregatortest.DialRaw(t, d.Socket)
		r.Open(weftv1.Publisher_Publish_FullMethodName)
		all = append(all, r)
	}
	for _, r := range all {
		r.Read(aggregatortest.Headers(1))
		if r.Gone() {
			t.Fatal("a connection was closed")
		}
	}
	each := (memory() - before) / connections
	t.Logf("an idle connection with a stream costs %d KiB", each>>10)
	if each > budget {
		t.Errorf("an idle connection costs %d bytes: at most %d are wanted", each, budget)
	}
	n.works(t, "beside 1,000 idle connections")
	for _, r := range all {
		_ = r.Connection().Close()
	}
	aggregatortest.Eventually(t, "the memory of closed connections is free", func() bool { return memory()-before < connections*budget/10 })
}

// TestHandshakeThatNeverEnds connects and says nothing, or half a sentence.
func TestHandshakeThatNeverEnds(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}},
		Limits: func(c *server.Config) { c.HandshakeTimeout = 50 * time.Millisecond },
	})
	for _, said := range []string{"", http2.ClientPreface[:10], http2.ClientPreface, http2.ClientPreface + "\x00\x00"} {
		c, err := net.Dial("unix", d.Socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, said); err != nil {
			t.Fatal(err)
		}
		// It ends, with or without a last word; the bound is for a failure.
		_ = c.SetReadDeadline(time.Now().Add(aggregatortest.Wait))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection that said %q stays open", said)
		}
		_ = c.Close()
	}
	// On a busy machine a good handshake can take longer than this one may, too.
	aggregatortest.Eventually(t, "an update is committed", func() bool {
		_, err := d.Dial(t, "tester").Apply(aggregatortest.Context(t), table())
		return err == nil
	})
}

// TestTooManyConnections goes beyond the limit of all callers, and back.
func TestTooManyConnections(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}},
		Limits: func(c *server.Config) { c.MaxConnections = 3 },
	})
	ctx := aggregatortest.Context(t)
	// Dial looks whether somebody listens with a connection of its own, which
	// the server may take a moment to see the end of.
	var in []*client.Client
	for len(in) < 3 {
		aggregatortest.Eventually(t, "the caller is let in", func() bool {
			c := d.Dial(t, "tester")
			if _, err := c.List(ctx); err != nil {
				return c.Close() != nil
			}
			in = append(in, c)
			return true
		})
	}
	aggregatortest.Eventually(t, "one more is refused", func() bool {
		c := d.Dial(t, "tester")
		defer c.Close()
		_, err := c.List(ctx)
		return errors.Is(err, client.ErrLimit) && strings.Contains(err.Error(), "3 connections are open: at most 3 are allowed")
	})
	for _, c := range in {
		if _, err := c.List(ctx); err != nil {
			t.Fatalf("one that was let in: %v", err)
		}
	}
	_ = in[0].Close()
	aggregatortest.Eventually(t, "there is room again", func() bool {
		c := d.Dial(t, "tester")
		defer c.Close()
		_, err := c.Apply(ctx, table())
		return err == nil
	})
}

// TestNoDescriptors has the process run out of descriptors: connections wait, and
// are served once there are some.
func TestNoDescriptors(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	inside := d.Dial(t, "tester")
	ctx := aggregatortest.Context(t)
	if _, err := inside.List(ctx); err != nil {
		t.Fatal(err)
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	few := old
	few.Cur = 256
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	free := func() {
		for _, f := range files {
			_ = f.Close()
		}
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)
	}
	defer free()
	for {
		f, err := os.Open("/dev/null")
		if errors.Is(err, syscall.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatal("there was no descriptor to begin with")
	}
	// The caller takes the last one: there is none for the server's end.
	_ = files[0].Close()
	files = files[1:]
	r := aggregatortest.DialRaw(t, d.Socket)
	r.Open(weftv1.Publisher_Publish_FullMethodName)
	if _, err := inside.Apply(ctx, table()); err != nil {
		t.Fatalf("a caller of before: %v", err)
	}
	free()
	r.Read(aggregatortest.Headers(1))
	if r.Gone() {
		t.Fatal("the connection that had to wait was closed")
	}
	if _, err := inside.List(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestTooManyCalls opens more streams on one connection than there may be: the
// library waits for one to end.
func TestTooManyCalls(t *testing.T) {
	d, conn := start(t, &aggregatortest.Kernel{})
	ctx := aggregatortest.Context(t)
	api := newAPI(conn)
	for range 256 {
		s, err := api.Publish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Header(); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := api.List(short, &weftv1.ListFragmentsRequest{})
	wantCode(t, err, codes.DeadlineExceeded, "")
	if _, err := d.Dial(t, "tester").List(ctx); err != nil {
		t.Fatalf("another connection: %v", err)
	}
}
