package server_test

import (
	"bytes"
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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
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
	n.bounded(t, "idle connections", connections*budget)
	n.works(t, "beside 1,000 idle connections")
	for _, r := range all {
		_ = r.Connection().Close()
	}
	aggregatortest.Eventually(t, "the memory of closed connections is free", func() bool { return memory()-n.memory < connections*budget/10 })
}

// TestHandshakeThatNeverEnds connects and says nothing, or half a sentence.
func TestHandshakeThatNeverEnds(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}},
		Limits: func(c *server.Config) { c.HandshakeTimeout = 50 * time.Millisecond },
	})
	for _, said := range []string{"", http2.ClientPreface[:10], http2.ClientPreface, http2.ClientPreface + "\x00\x00"} {
		c, err := net.Dial("unix", d.Socket)
		must(t, err)
		must(t, errorOf(io.WriteString(c, said)))
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
		must(t, errorOf(c.List(ctx)))
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
	must(t, errorOf(inside.List(ctx)))
	var old syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	few := old
	few.Cur = 256
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
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
		must(t, err)
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
	must(t, errorOf(inside.Apply(ctx, table())))
	free()
	r.Read(aggregatortest.Headers(1))
	if r.Gone() {
		t.Fatal("the connection that had to wait was closed")
	}
	must(t, errorOf(inside.List(ctx)))
}

// TestTooManyCalls opens more streams on one connection than there may be: the
// library waits for one to end.
func TestTooManyCalls(t *testing.T) {
	d, conn := start(t, &aggregatortest.Kernel{})
	ctx := aggregatortest.Context(t)
	api := newAPI(conn)
	for range 256 {
		s, err := api.Publish(ctx)
		must(t, err)
		must(t, errorOf(s.Header()))
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	wantCode(t, errorOf(api.List(short, &weftv1.ListFragmentsRequest{})), codes.DeadlineExceeded, "")
	must(t, errorOf(d.Dial(t, "tester").List(ctx)))
}

// limited is a configuration with one publisher that may have little.
const limited = "socketGroup: 1234\npublishers:\n- {name: cni, match: {uid: 1234}, limits: {rules: 50, elements: 100}}\n"

// nest encodes messages within each other: the fields are those from the outermost.
func nest(content []byte, fields ...protowire.Number) []byte {
	for i := len(fields) - 1; i >= 0; i-- {
		content = protowire.AppendBytes(protowire.AppendTag(nil, fields[i], protowire.BytesType), content)
	}
	return content
}

// TestTooLargeToDecode sends requests that are small when encoded and huge in memory.
func TestTooLargeToDecode(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	d := startConfigured(t, limited)
	conn := aggregatortest.DialAs(t, d.Socket, aggregatortest.User{UID: 1234, GID: 1234})
	ctx := aggregatortest.Context(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tables := nest(bytes.Repeat([]byte{0x22, 0}, 2<<20), 1)
	wantCode(t, conn.Invoke(ctx, weftv1.Publisher_Apply_FullMethodName, tables, &weftv1.ApplyResponse{}, grpc.ForceCodec(rawCodec{})),
		codes.ResourceExhausted, "the request is too large: it has 2097152 tables: at most 64 are allowed")
	runtime.ReadMemStats(&after)
	// Decoded they would be more than 300 MiB.
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 100 {
		t.Errorf("to refuse 4 MiB took %d MiB", n)
	}

	s := publish(t, conn, "")
	small, large := fragment("cni"), fragment("cni")
	set := large.GetTables()[0].GetSets()[0]
	for range 40_000 {
		set.Elements = append(set.GetElements(), &weftv1.Element{})
	}
	for _, step := range []struct {
		req    *weftv1.PublishRequest
		reason weftv1.Violation_Reason
		text   string
	}{
		{snapshot(1, large), weftv1.Violation_REASON_LIMIT, "sends a snapshot with at least 40001 elements: at most 100 are allowed"},
		{snapshot(2, small), 0, ""},
		{&weftv1.PublishRequest{Id: 3, Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{Fragment: "list", Tables: []*weftv1.TablePatch{{
			Family: "inet", Name: "cni", Elements: []*weftv1.ElementPatch{{Set: "blocked", Add: set.GetElements()}},
		}}}}}, weftv1.Violation_REASON_LIMIT, "at most 100 are allowed"},
	} {
		must(t, s.Send(step.req))
		resp, err := s.Recv()
		if err != nil || resp.GetId() != step.req.GetId() {
			t.Fatalf("update %d: response %v, error %v", step.req.GetId(), resp, err)
		}
		if step.text == "" {
			if resp.GetCommitted() == nil {
				t.Errorf("update %d: %v: want it committed", resp.GetId(), resp)
			}
			continue
		}
		v := resp.GetRejected().GetViolations()
		if len(v) == 0 || v[0].GetReason() != step.reason || !strings.Contains(v[0].GetMessage(), step.text) {
			t.Errorf("update %d: %v: want %v with %q", resp.GetId(), resp, step.reason, step.text)
		}
	}
}

// TestStrangersAreTold has a peer connect that is not a publisher: its calls are refused
// before their requests, and its connection is closed.
func TestStrangersAreTold(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	d := startConfigured(t, limited)
	c, err := aggregatortest.ConnectAs(d.Socket, aggregatortest.User{UID: 4321, GID: 1234})
	must(t, err)
	r := aggregatortest.NewRaw(t, c)
	// The request itself is never sent.
	id := r.Open(weftv1.Publisher_Apply_FullMethodName)
	r.Read(nil)
	if r.Ended(id) != "7" || !r.Gone() {
		t.Errorf("status %q, closed %v: want 7, PERMISSION_DENIED, and the end of the connection", r.Ended(id), r.Gone())
	}
}
