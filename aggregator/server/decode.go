package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// bytes up to which a request is decoded unmeasured, into a few MiB
	smallRequest = 32 << 10
	// maxDecoding is the memory in bytes of all requests decoded but not yet admitted, as counted
	// by admission.Size. System callers have as much for themselves.
	maxDecoding = 256 << 20
)

// decoder rejects too large requests before decoding. Large requests wait: first for others of the
// same publisher, then for memory.
type decoder struct {
	agg         *aggregator.Aggregator
	all, system *semaphore.Weighted

	mu       sync.Mutex
	decoding map[string]*turn
}

// turn admits one large request of a publisher at a time.
type turn struct {
	*semaphore.Weighted
	users int
}

func newDecoder(agg *aggregator.Aggregator) *decoder {
	return &decoder{
		agg: agg, all: semaphore.NewWeighted(maxDecoding), system: semaphore.NewWeighted(maxDecoding),
		decoding: make(map[string]*turn),
	}
}

// reserve waits until a request may take n bytes. The caller calls release once.
func (d *decoder) reserve(ctx context.Context, c caller, n int) (release func(), err error) {
	all := d.all
	if c.System {
		all = d.system
	}
	d.mu.Lock()
	t := d.decoding[c.Publisher]
	if t == nil {
		t = &turn{Weighted: semaphore.NewWeighted(1)}
		d.decoding[c.Publisher] = t
	}
	t.users++
	d.mu.Unlock()
	leave := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(d.decoding, c.Publisher)
		}
	}
	if err := t.Acquire(ctx, 1); err != nil {
		leave()
		return nil, err
	}
	weight := int64(min(n, maxDecoding))
	if err := all.Acquire(ctx, weight); err != nil {
		t.Release(1)
		leave()
		return nil, err
	}
	return func() {
		all.Release(weight)
		t.Release(1)
		leave()
	}, nil
}

// request is the request of a call while it is received or admitted. The goroutine that receives
// owns tooLarge and size.
type request struct {
	// fires if the first request of a call is late; stopped for Publish
	late *time.Timer
	// why a PublishRequest lost its tables
	tooLarge error
	// encoded bytes
	size int

	mu sync.Mutex
	// nil without a reservation
	release func()
	// no reservation is held after the end of the call
	ended bool
}

// newRequest starts the receive timeout if expected is true.
func newRequest(expected bool) *request {
	r := &request{late: time.NewTimer(receiveTimeout)}
	if !expected {
		r.late.Stop()
	}
	return r
}

func (r *request) expect() { r.late.Reset(receiveTimeout) }

func (r *request) arrived() { r.late.Stop() }

// reserved stores release, to be called once, after admission.
func (r *request) reserved(release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		release()
		return
	}
	r.release = release
}

func (r *request) admitted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.release != nil {
		r.release()
		r.release = nil
	}
}

// end is called at the end of the call. A goroutine of the call may still be receiving.
func (r *request) end() {
	r.late.Stop()
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.admitted()
}

// decode decodes a request into m unless it is too large. A PublishRequest loses its tables
// instead, and its stream goes on.
func (d *decoder) decode(ctx context.Context, m proto.Message, receive func(any) error) error {
	c := callerFrom(ctx)
	r := c.request
	r.admitted()
	r.tooLarge = nil
	raw := rawRequest{most: longest(m)}
	err := receive(&raw)
	r.arrived()
	if err != nil {
		return err
	}
	c.unread.received(raw.length)
	if c.turn != nil {
		c.turn.Work()
	}
	if raw.Buffer == nil {
		return fmt.Errorf("%w: a request of %d bytes, want at most %d", errLimit, raw.length, raw.most)
	}
	defer raw.Free()
	b := raw.ReadOnlyData()
	if err = countList(m, b); err == nil && len(b) > smallRequest {
		b, err = d.measure(ctx, c, m, b)
	}
	r.size = len(b)
	if err == nil {
		err = malformed(proto.Unmarshal(b, m))
	}
	return err
}

func (d *decoder) measure(ctx context.Context, c caller, m proto.Message, b []byte) ([]byte, error) {
	message := m.ProtoReflect().Descriptor()
	size, err := admission.Measure(message, b)
	if err != nil {
		return nil, malformed(err)
	}
	err = size.Check(c.access.Publisher(c.Publisher), func() (rules, elements int) { return d.agg.Holds(c.Publisher) })
	if _, ok := m.(*weftv1.PublishRequest); ok && err != nil {
		c.request.tooLarge = err
		b, err = admission.Head(message, b)
		return b, malformed(err)
	}
	if err != nil {
		return nil, err
	}
	release, err := d.reserve(ctx, c, size.Decoded)
	if err != nil {
		return nil, err
	}
	c.request.reserved(release)
	return b, nil
}

func malformed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errMalformed, err)
}

type rawRequest struct {
	// nil if the request's length is more than most, in bytes
	mem.Buffer
	length, most int
}

// requestCodec is gRPC's own codec, but does not decode a rawRequest.
type requestCodec struct{ encoding.CodecV2 }

func newRequestCodec() requestCodec { return requestCodec{encoding.GetCodecV2("proto")} }

func (c requestCodec) Unmarshal(data mem.BufferSlice, v any) error {
	raw, ok := v.(*rawRequest)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if raw.length = data.Len(); raw.length <= raw.most {
		// The default pool would give a request of 33 KiB a buffer of 1 MiB.
		raw.Buffer = data.MaterializeToBuffer(mem.NopBufferPool{})
	}
	return nil
}
