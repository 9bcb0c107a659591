package nri_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/nri"
)

// frame returns a frame of the multiplexer. Connection 1 has requests for the plugin, 2 those
// for the runtime.
func frame(conn uint32, payload ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, conn), uint32(len(payload))), payload...)
}

// message returns a message of ttrpc.
func message(length, stream uint32, kind byte, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, length), stream)
	return append(append(b, kind, 0), payload...)
}

// TestGarbage sends what is not NRI, and expects that the plugin disconnects without use of
// much memory, connects again, and works.
func TestGarbage(t *testing.T) {
	noise := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	var unknown []byte
	for i := range uint32(100) {
		unknown = append(unknown, frame(1, message(0, 2*i+1, 1)...)...)
	}
	// Those with a reason end the connection, the others are answered or ignored.
	for name, test := range map[string]struct {
		bytes  []byte
		reason string
	}{
		"nothing":                    {},
		"noise":                      {noise, "more than 4194314"},
		"half a header":              {bytes: []byte{0, 0, 0}},
		"half a frame":               {bytes: frame(1, make([]byte, 100)...)[:50]},
		"a frame of 4 GiB":           {binary.BigEndian.AppendUint32([]byte{0, 0, 0, 1}, 1<<32-1), "a frame of 4294967295 bytes"},
		"a frame of another one":     {bytes: frame(7, 1, 2, 3)},
		"many frames":                {bytes: slices.Repeat(frame(1), 10000)},
		"a message of 4 GiB":         {frame(1, message(1<<32-1, 1, 1)...), "a message of 4294967295 bytes"},
		"data of no stream":          {frame(1, message(1, 1, 3, 0)...), "a message of type 3, want 1"},
		"data after a request":       {frame(1, append(message(0, 1, 1), message(1, 1, 3, 0)...)...), "a message of type 3, want 1"},
		"a message of no type":       {frame(1, message(0, 1, 9)...), "a message of type 9, want 1"},
		"an even stream":             {bytes: frame(1, message(0, 2, 1)...)},
		"no request":                 {bytes: frame(1, message(4, 1, 1, 0xff, 0xff, 0xff, 0xff)...)},
		"requests for no service":    {bytes: unknown},
		"a request in the other way": {frame(2, message(0, 1, 1)...), "a message of type 1, want 2"},
		"an answer to nothing":       {bytes: frame(2, message(0, 1, 2)...)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			l := newLab(t, p.socket, time.Minute)
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			c := p.acceptRaw(t)
			_, _ = c.Write(test.bytes)
			if test.reason == "" {
				_ = c.(interface{ CloseWrite() error }).CloseWrite()
			}
			_, _ = io.Copy(io.Discard, c)
			l.logs.await(t, test.reason)
			goruntime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
				t.Errorf("allocated %d bytes", n)
			}
			p.accept(t).synchronize(t, pod("a", "10.0.0.1"))
			wait(t, "the report", l.plugin.Synced())
			l.expect(t, "a 10.0.0.1")
		})
	}
}

// TestSilentRuntime disconnects from a runtime that does not answer, or does not report its
// pods.
func TestSilentRuntime(t *testing.T) {
	p := newPeer(t)
	l := newLab(t, p.socket, time.Minute, func(cfg *nri.Config) { cfg.SyncTimeout = 300 * time.Millisecond })
	_, _ = io.Copy(io.Discard, p.acceptRaw(t))
	l.logs.await(t, "register with the container runtime: the runtime did not report its pods in time")
	c := p.accept(t)
	must(t, c.call(t.Context(), "Configure", &api.ConfigureRequest{}))
	l.logs.await(t, `error="the runtime did not report its pods in time"`)
	// Half a report is none.
	c = p.accept(t)
	must(t, c.call(t.Context(), "Synchronize", &api.SynchronizeRequest{Pods: []*api.PodSandbox{pod("a", "10.0.0.1")}, More: true}))
	p.accept(t)
	if l.expect(t); l.plugin.Stats().Connected {
		t.Error("connected to a silent runtime")
	}
}

// TestStuckModel answers in time although the model takes no changes, and makes them up with
// a complete report.
func TestStuckModel(t *testing.T) {
	p, l, c := connected(t, 5*time.Millisecond)
	l.mu.Lock()
	unlock := sync.OnceFunc(l.mu.Unlock)
	defer unlock()
	n := 0
	for ; n < 1000; n++ {
		began := time.Now()
		method := []string{"RunPodSandbox", "StopPodSandbox"}[n%2]
		if err := c.call(t.Context(), method, &api.RunPodSandboxRequest{Pod: pod("a", "10.0.0.1")}); err != nil {
			break
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("an answer took %s", took)
		}
	}
	if n < 10 || n > 100 {
		t.Errorf("%d requests were answered", n)
	}
	unlock()
	l.logs.await(t, "more than 64 changes wait for delivery")
	p.accept(t).synchronize(t, pod("b", "10.0.0.2"))
	l.await(t, "b 10.0.0.2")
	if s := l.plugin.Stats(); s.Late == 0 || s.Requests < 10 {
		t.Errorf("%+v", s)
	}
}

// TestManyRequests ends a connection with more requests at once than a runtime sends.
func TestManyRequests(t *testing.T) {
	p, l, c := connected(t, time.Minute)
	l.hold()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			// An answer with an error would refuse the pod.
			err := c.call(t.Context(), "RunPodSandbox", &api.RunPodSandboxRequest{Pod: pod(fmt.Sprint("a", i), "10.0.0.1")})
			if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
				t.Errorf("pod %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	l.logs.await(t, "more than 16 requests at once")
	l.release()
	p.accept(t).synchronize(t)
	l.await(t)
}

// TestUndecodable ends the connection without an error, which would refuse the pod.
func TestUndecodable(t *testing.T) {
	p := newPeer(t)
	l := newLab(t, p.socket, time.Minute)
	for _, method := range []string{"RunPodSandbox", "Synchronize", "Configure"} {
		c := p.accept(t)
		req := &emptypb.Empty{}
		// A pod, which has fewer bytes than it says.
		req.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0xff}))
		err := c.call(t.Context(), method, req)
		if s, ok := status.FromError(err); ok && s.Code() != codes.OK && method == "RunPodSandbox" {
			t.Errorf("%s: %v", method, err)
		}
		_ = c.Close()
	}
	l.logs.await(t, "decode a request of the container runtime")
}

// TestLargeReport refuses a report that is larger than any runtime's.
func TestLargeReport(t *testing.T) {
	large := make(map[string]string)
	for i := range 1000 {
		large[fmt.Sprint(i)] = strings.Repeat("x", 500)
	}
	var many, wide []*api.PodSandbox
	for i := range model.MaxSandboxes + 1 {
		many = append(many, pod(fmt.Sprint("p", i), "10.0.0.1"))
	}
	for i := range 150 {
		w := pod(fmt.Sprint("p", i), "10.0.0.1")
		w.Labels = large
		wide = append(wide, w)
	}
	for name, pods := range map[string][]*api.PodSandbox{"pods": many, "labels": wide} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			l := newLab(t, p.socket, time.Minute)
			c := p.accept(t)
			var err error
			for part := range slices.Chunk(pods, len(pods)/50+1) {
				if err = c.call(t.Context(), "Synchronize", &api.SynchronizeRequest{Pods: part, More: true}); err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "more than") {
				t.Errorf("error %v", err)
			}
			_ = c.Close()
			p.accept(t).synchronize(t, pod("a", "10.0.0.1"))
			l.await(t, "a 10.0.0.1")
		})
	}
}

// TestEventsWithoutPods answers events that lack their pod, or that the plugin did not ask for.
func TestEventsWithoutPods(t *testing.T) {
	_, l, c := connected(t, time.Minute, pod("a", "10.0.0.1"))
	for _, method := range []string{"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "Shutdown"} {
		if err := c.call(t.Context(), method, &api.Empty{}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	for e := range api.Event(20) {
		if err := c.call(t.Context(), "StateChange", &api.StateChangeEvent{Event: e}); err != nil {
			t.Errorf("event %d: %v", e, err)
		}
	}
	// A runtime before v0.12.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := c.call(ctx, "StateChange", &api.StateChangeEvent{Event: api.Event_RUN_POD_SANDBOX, Pod: pod("b", "10.0.0.2")}); err != nil {
		t.Error(err)
	}
	l.expect(t, "a 10.0.0.1", "b 10.0.0.2")
}
