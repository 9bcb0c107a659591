package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// wire is a connection of which the test writes the client's direction and reads as gRPC does.
type wire struct {
	t *testing.T
	*countedConn
	sent   *bytes.Buffer
	client *http2.Framer
}

// wireConn reads from a reader.
type wireConn struct {
	socketConn
	io.Reader
}

func (c *wireConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }

func newWire(t *testing.T, budget *budget, publisher string, system bool, pieces func(io.Reader) io.Reader) *wire {
	t.Helper()
	w := &wire{t: t, sent: &bytes.Buffer{}}
	limited := &limitedConn{socketConn: &wireConn{Reader: pieces(w.sent)}, limits: newConnections(0, 0, nil), peer: access.Peer{}, identified: func() {}}
	w.countedConn = newCountedConn(limited, budget, publisher, system)
	w.client = http2.NewFramer(w.sent, nil)
	w.client.AllowIllegalWrites = true
	w.sent.WriteString(http2.ClientPreface)
	return w
}

// read reads all that the client wrote, and checks that nothing of it is lost.
func (w *wire) read() {
	w.t.Helper()
	want := bytes.Clone(w.sent.Bytes())
	got := make([]byte, len(want))
	if _, err := io.ReadFull(w.countedConn, got); err != nil || !bytes.Equal(got, want) {
		w.t.Fatalf("error %v, or other bytes", err)
	}
}

// begin begins a call, as gRPC does. The returned function ends it.
func (w *wire) begin(id uint32) (*unread, func()) {
	w.t.Helper()
	if err := w.client.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte("x"), EndHeaders: true}); err != nil {
		w.t.Fatal(err)
	}
	w.read()
	ctx, cancel := context.WithCancel(peer.NewContext(w.t.Context(), &peer.Peer{AuthInfo: AuthInfo{conn: w.countedConn}}))
	ctx, err := countCall(ctx, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return unreadFrom(ctx), func() { cancel(); synctest.Wait() }
}

// data sends n bytes in frames of at most 16 KiB, with padding.
func (w *wire) data(id uint32, n int) {
	w.t.Helper()
	w.sent.Grow(n + n/10)
	zeros := make([]byte, maxFrame)
	for n > 0 {
		piece := min(n, maxFrame-1-200)
		if err := w.client.WriteDataPadded(id, false, zeros[:piece], zeros[:n%200]); err != nil {
			w.t.Fatal(err)
		}
		n -= piece
	}
}

func whole(r io.Reader) io.Reader { return r }

// TestUnreadDataIsCounted sends messages in pieces of several sizes.
func TestUnreadDataIsCounted(t *testing.T) {
	for _, pieces := range []func(io.Reader) io.Reader{whole, iotest.OneByteReader, iotest.HalfReader} {
		synctest.Test(t, func(t *testing.T) {
			budget := newBudget()
			w := newWire(t, budget, "cni", false, pieces)
			want := func(n int, why string) {
				t.Helper()
				if w.sent.Len() > 0 {
					w.read()
				}
				if budget.total != n || budget.byPublisher["cni"] != n {
					t.Fatalf("%s: %d bytes are counted, %d of the publisher: want %d", why, budget.total, budget.byPublisher["cni"], n)
				}
			}
			first, endFirst := w.begin(1)
			w.data(1, 50_000)
			want(50_000, "half a message")
			_, endSecond := w.begin(3)
			w.data(3, 3)
			want(50_003, "a part of a length")
			w.data(1, 50_005)
			want(100_008, "the rest of the message")
			first.received(100_000)
			want(3, "the handler received it")
			w.data(99, 100)
			want(3, "a call that gRPC has refused")
			endSecond()
			want(0, "a call ends")
			w.data(3, 100)
			want(0, "what the client still sends")
			endFirst()
			first.received(10)
			if want(0, "the end"); len(budget.byPublisher) != 0 || len(w.calls) != 0 {
				t.Errorf("after the end %v and %v are left", budget.byPublisher, w.calls)
			}
		})
	}
}

// TestTooMuchIsIncomplete fills the limits of a publisher and of all.
func TestTooMuchIsIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := newBudget()
		var ends []func()
		// hold has a publisher hold three quarters of the largest message, or returns why its call ends.
		hold := func(publisher string, system bool) error {
			w := newWire(t, budget, publisher, system, whole)
			u, end := w.begin(1)
			ends = append(ends, end)
			w.data(1, MaxMessage*3/4)
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.read()
			}()
			synctest.Wait()
			select {
			case err := <-u.limit():
				before := budget.total
				select {
				case <-done:
					t.Error("the connection is read before the call has ended")
				default:
				}
				if end(); u.bytes != 0 || budget.total > before {
					t.Error("a call that has ended holds bytes")
				}
				<-done
				return err
			case <-done:
				return nil
			}
		}
		refused := func(publisher, text string) {
			t.Helper()
			before := budget.total
			if err := hold(publisher, false); !errors.Is(err, errLimit) || !strings.Contains(err.Error(), text) {
				t.Fatalf("publisher %s: error %v: want %q", publisher, err, text)
			}
			if budget.total != before {
				t.Errorf("a call that has ended holds %d bytes", budget.total-before)
			}
		}
		for range 2 {
			must(t, hold("a", false))
		}
		refused("a", "messages of publisher a that are not complete have more than 33554432 bytes: send fewer at a time")
		for range 2 {
			for _, p := range []string{"b", "c", "d"} {
				must(t, hold(p, false))
			}
		}
		refused("e", "messages of all callers that are not complete have more than 100663296 bytes")
		must(t, hold("services", true))
		for _, end := range ends {
			end()
		}
		if budget.total != 0 {
			t.Errorf("at the end %d bytes are counted", budget.total)
		}
	})
}

// FuzzFrames feeds any bytes: gRPC gets them as they came, and no more is counted than arrived.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x01\x04\x00\x00\x00\x01x\x00\x00\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x09a"))
	f.Add([]byte("\x00\x00\x05\x00\x08\x00\x00\x00\x01\xffabcd\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		budget := newBudget()
		w := newWire(t, budget, "a", false, iotest.HalfReader)
		w.sent.Write(b)
		w.calls[1] = &unread{conn: w.countedConn, ctx: t.Context(), exceeded: make(chan error, 1)}
		got, _ := io.ReadAll(w.countedConn)
		if !strings.HasPrefix(http2.ClientPreface+string(b), string(got)) {
			t.Fatalf("%d bytes of %d came out as others", len(got), len(b))
		}
		if budget.total < 0 || budget.total > len(b) {
			t.Fatalf("%d bytes are counted of %d", budget.total, len(b))
		}
	})
}

// logBuffer collects log lines.
type logBuffer struct{ strings.Builder }

func newInterceptor(log *logBuffer) *interceptor {
	l := slog.New(slog.NewTextHandler(log, nil))
	c, err := access.Open(access.Options{Logger: l})
	if err != nil {
		panic(err)
	}
	return &interceptor{access: c, streams: newStreams(c), log: l}
}

// from is a context of a call by a peer.
func from(p access.Peer) context.Context {
	return peer.NewContext(context.Background(), &peer.Peer{Addr: &net.UnixAddr{}, AuthInfo: AuthInfo{Peer: p}})
}

func TestCallWithoutAPeer(t *testing.T) {
	err := newInterceptor(&logBuffer{}).call(nil, fakeStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/weft.v1.Inspect/ListFragments"}, nil)
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("no peer: %v", err)
	}
}

// TestRequestThatDoesNotArrive has a call end whose request is not complete, and calls go on
// whose request is, or that have many.
func TestRequestThatDoesNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		in := newInterceptor(&log)
		ctx, cancel := context.WithCancel(from(access.Peer{NetAdmin: true}))
		call := func(method string, receive bool) <-chan error {
			ended := make(chan error, 1)
			go func() {
				ended <- in.call(nil, fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: method}, func(_ any, ss grpc.ServerStream) error {
					if receive {
						callerFrom(ss.Context()).request.arrived()
					}
					<-ss.Context().Done()
					return ss.Context().Err()
				})
			}()
			return ended
		}
		slow := call(weftv1.Publisher_Apply_FullMethodName, false)
		complete := call(weftv1.Publisher_Apply_FullMethodName, true)
		stream := call(weftv1.Publisher_Publish_FullMethodName, false)
		began := time.Now()
		if err := <-slow; status.Code(err) != codes.DeadlineExceeded || time.Since(began) != receiveTimeout {
			t.Errorf("a request that has not arrived: error %v after %v: want DeadlineExceeded after %v", err, time.Since(began), receiveTimeout)
		}
		<-time.After(receiveTimeout)
		select {
		case err := <-complete:
			t.Errorf("a call whose request has arrived ends: %v", err)
		case err := <-stream:
			t.Errorf("a stream ends: %v", err)
		default:
		}
		cancel()
		<-complete
		<-stream
	})
}

func TestPanicIsInternal(t *testing.T) {
	var log logBuffer
	in := newInterceptor(&log)
	for _, info := range []*grpc.StreamServerInfo{
		{FullMethod: "/weft.v1.Inspect/GetFragment"},
		{FullMethod: "/weft.v1.Inspect/Watch", IsServerStream: true},
	} {
		log.Reset()
		err := in.call(nil, fakeStream{ctx: from(access.Peer{NetAdmin: true})}, info, func(any, grpc.ServerStream) error { panic("boom") })
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") || !strings.Contains(log.String(), "boom") {
			t.Errorf("%s: error %v, log %q", info.FullMethod, err, log.String())
		}
	}
}

type fakeStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a fake of one that has it
}

func (s fakeStream) Context() context.Context { return s.ctx }

func TestToStatus(t *testing.T) {
	rejected := func(r weftv1.Violation_Reason) error {
		return &aggregator.RejectedError{Violations: []*weftv1.Violation{{Message: "no", Reason: r}}}
	}
	tests := []struct {
		err  error
		want codes.Code
	}{
		{nil, codes.OK},
		{access.ErrDenied, codes.PermissionDenied},
		{access.ErrExceeded, codes.ResourceExhausted},
		{&access.Refusal{Limit: access.LimitStreams}, codes.ResourceExhausted},
		{&access.Refusal{Limit: access.LimitUpdates}, codes.ResourceExhausted},
		{&access.Refusal{Limit: access.LimitTable}, codes.PermissionDenied},
		{errAnonymous, codes.Unauthenticated},
		{errPanic, codes.Internal},
		{aggregator.ErrNotFound, codes.NotFound},
		{aggregator.ErrInvalidName, codes.InvalidArgument},
		{aggregator.ErrProtocol, codes.InvalidArgument},
		{aggregator.ErrStandby, codes.Unavailable},
		{aggregator.ErrStopped, codes.Unavailable},
		{aggregator.ErrSlowWatcher, codes.ResourceExhausted},
		{errLimit, codes.ResourceExhausted},
		{context.Canceled, codes.Canceled},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{status.Error(codes.ResourceExhausted, "large"), codes.ResourceExhausted},
		{fmt.Errorf("what: %w", fmt.Errorf("else")), codes.Internal},
		{rejected(weftv1.Violation_REASON_SYNTAX), codes.InvalidArgument},
		{rejected(weftv1.Violation_REASON_CONFLICT), codes.FailedPrecondition},
		{rejected(weftv1.Violation_REASON_KERNEL), codes.FailedPrecondition},
		{rejected(weftv1.Violation_REASON_LIMIT), codes.ResourceExhausted},
		{rejected(weftv1.Violation_REASON_PERMISSION), codes.PermissionDenied},
		{rejected(weftv1.Violation_REASON_EXPIRED), codes.FailedPrecondition},
		{rejected(weftv1.Violation_REASON_UNCONFIRMED), codes.FailedPrecondition},
	}
	for _, tt := range tests {
		if tt.err != nil {
			tt.err = fmt.Errorf("call: %w", tt.err)
		}
		if got := status.Code(toStatus(tt.err)); got != tt.want {
			t.Errorf("%v: code %v, want %v", tt.err, got, tt.want)
		}
	}
}

// TestStatusStays passes a status of another service on without a second code in its text.
func TestStatusStays(t *testing.T) {
	want := status.Error(codes.NotFound, "no Service a/b")
	if got := toStatus(want); got.Error() != want.Error() {
		t.Errorf("%v became %v", want, got)
	}
}

// TestRetryInfo has the delay of a refusal in the details of its status.
func TestRetryInfo(t *testing.T) {
	err := toStatus(&retryError{error: &access.Refusal{Limit: access.LimitUpdates, Text: "too fast"}, delay: 1500 * time.Millisecond})
	st := status.Convert(err)
	if st.Code() != codes.ResourceExhausted || len(st.Details()) != 2 {
		t.Fatalf("status %v with details %v", st, st.Details())
	}
	if _, ok := st.Details()[0].(*weftv1.Rejected); !ok {
		t.Errorf("first detail is %v, want the violations", st.Details()[0])
	}
	info, ok := st.Details()[1].(*errdetails.RetryInfo)
	if !ok || info.GetRetryDelay().AsDuration() != 1500*time.Millisecond {
		t.Errorf("second detail is %v, want 1.5s", st.Details()[1])
	}
}
