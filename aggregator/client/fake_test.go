package client_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// fake is an aggregator that holds fragments of one set, and that misbehaves as
// it is told. It stays when the streams to it end, and when its socket does.
type fake struct {
	weftv1.UnimplementedPublisherServer
	weftv1.UnimplementedInspectServer
	socket string
	// features are of GetInfo, planned is the last request of Plan.
	features []string
	planned  *weftv1.PlanRequest

	mu sync.Mutex
	// open, when set, can refuse a stream.
	open func() error
	// judge, when set, decides on an update.
	judge func(name string, req *weftv1.PublishRequest) verdict
	// held are the keys of each fragment.
	held map[string]map[string]bool
	// owner is the stream that sent a fragment's last snapshot.
	owner    map[string]*fakeStream
	streams  int
	revision uint64
	serving  *grpc.Server
}

// verdict is what is done with an update.
type verdict struct {
	// reject refuses it, if it is not zero.
	reject weftv1.Violation_Reason
	// unapplied leaves it out; with end, which ends the stream in place of an
	// answer.
	unapplied bool
	end       error
}

// fakeStream is one stream; it has a size so that each has an address.
type fakeStream struct{ number int }

func newFake(t testing.TB) *fake {
	f := &fake{socket: aggregatortest.Socket(t), held: make(map[string]map[string]bool), owner: make(map[string]*fakeStream)}
	f.start(t)
	t.Cleanup(f.stop)
	return f
}

// start listens, on the same socket again after stop.
func (f *fake) start(t testing.TB) {
	if err := os.Remove(f.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.socket, Net: "unix"})
	must(t, err)
	// A server that was stopped before it served closes the listener late.
	l.SetUnlinkOnClose(false)
	s := grpc.NewServer(grpc.MaxRecvMsgSize(server.MaxMessage))
	weftv1.RegisterPublisherServer(s, f)
	weftv1.RegisterInspectServer(s, f)
	f.mu.Lock()
	f.serving = s
	f.mu.Unlock()
	go func() { _ = s.Serve(l) }()
}

func (f *fake) Plan(req *weftv1.PlanRequest, stream grpc.ServerStreamingServer[weftv1.PlanResponse]) error {
	f.planned = req
	return stream.Send(&weftv1.PlanResponse{})
}

func (f *fake) GetInfo(context.Context, *weftv1.GetInfoRequest) (*weftv1.GetInfoResponse, error) {
	return &weftv1.GetInfoResponse{Features: f.features}, nil
}

// stop breaks all connections.
func (f *fake) stop() {
	f.mu.Lock()
	s := f.serving
	f.mu.Unlock()
	s.Stop()
}

// reboot breaks all connections, forgets what is held, and listens again.
func (f *fake) reboot(t testing.TB) {
	f.stop()
	f.mu.Lock()
	clear(f.held)
	clear(f.owner)
	f.mu.Unlock()
	f.start(t)
}

func (f *fake) dial(t testing.TB) *client.Client {
	c, err := client.Dial(aggregatortest.Context(t), client.Quick(client.Config{Socket: f.socket, Publisher: "tester"}))
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// behave sets what the fake does from now on.
func (f *fake) behave(open func() error, judge func(string, *weftv1.PublishRequest) verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open, f.judge = open, judge
}

// keys returns what the fake holds of a fragment, sorted; nil for nothing.
func (f *fake) keys(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sorted(f.held[name])
}

func (f *fake) opened() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams
}

func sorted(m map[string]bool) []string {
	if m == nil {
		return nil
	}
	return slices.AppendSeq([]string{}, func(yield func(string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k) {
				return
			}
		}
	})
}

// Publish speaks the protocol.
func (f *fake) Publish(stream grpc.BidiStreamingServer[weftv1.PublishRequest, weftv1.PublishResponse]) error {
	f.mu.Lock()
	f.streams++
	me, open := &fakeStream{f.streams}, f.open
	f.mu.Unlock()
	if open != nil {
		if err := open(); err != nil {
			return err
		}
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	var building *weftv1.Fragment
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if s := req.GetSnapshot(); s != nil {
			if building == nil {
				building = &weftv1.Fragment{Name: s.GetName()}
			}
			building.Tables = append(building.Tables, s.GetTables()...)
			if req.GetMore() {
				continue
			}
			req = &weftv1.PublishRequest{Id: req.GetId(), Update: &weftv1.PublishRequest_Snapshot{Snapshot: building}}
			building = nil
		} else if building != nil {
			return status.Error(codes.InvalidArgument, "another update within a snapshot")
		}
		resp, err := f.update(me, req)
		if err != nil {
			return err
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}

func (f *fake) update(me *fakeStream, req *weftv1.PublishRequest) (*weftv1.PublishResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := req.GetWithdraw()
	switch u := req.GetUpdate().(type) {
	case *weftv1.PublishRequest_Snapshot:
		name = u.Snapshot.GetName()
	case *weftv1.PublishRequest_Patch:
		name = u.Patch.GetFragment()
	}
	var v verdict
	if f.judge != nil {
		v = f.judge(name, req)
	}
	owner := f.owner[name]
	switch {
	case v.reject != 0:
	case req.GetPatch() != nil && owner == nil:
		v.reject = weftv1.Violation_REASON_SNAPSHOT_NEEDED
	case req.GetPatch() != nil && owner != me:
		// The protocol says TAKEN_OVER where this stream had the fragment; to
		// a stream that never sent a snapshot it says SNAPSHOT_NEEDED.
		v.reject = weftv1.Violation_REASON_SNAPSHOT_NEEDED
	case !v.unapplied:
		f.apply(me, name, req)
	}
	if v.end != nil {
		return nil, v.end
	}
	if v.reject != 0 {
		return &weftv1.PublishResponse{Id: req.GetId(), Result: &weftv1.PublishResponse_Rejected{
			Rejected: &weftv1.Rejected{Violations: []*weftv1.Violation{{Message: "no", Reason: v.reject}}},
		}}, nil
	}
	f.revision++
	return &weftv1.PublishResponse{Id: req.GetId(), Result: &weftv1.PublishResponse_Committed{
		Committed: &weftv1.Committed{Revision: f.revision},
	}}, nil
}

func (f *fake) apply(me *fakeStream, name string, req *weftv1.PublishRequest) {
	switch u := req.GetUpdate().(type) {
	case *weftv1.PublishRequest_Snapshot:
		f.held[name], f.owner[name] = make(map[string]bool), me
		for _, t := range u.Snapshot.GetTables() {
			for _, s := range t.GetSets() {
				for _, e := range s.GetElements() {
					f.held[name][e.GetKey()] = true
				}
			}
		}
	case *weftv1.PublishRequest_Patch:
		for _, t := range u.Patch.GetTables() {
			for _, e := range t.GetElements() {
				for _, k := range e.GetRemove() {
					delete(f.held[name], k)
				}
				for _, a := range e.GetAdd() {
					f.held[name][a.GetKey()] = true
				}
			}
		}
	default:
		delete(f.held, name)
		delete(f.owner, name)
	}
}
