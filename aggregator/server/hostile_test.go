package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// deaf is a setting with which the server may not send a byte of a response.
var deaf = http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}

// TestPublishersThatNeverReadAcknowledgements send without end and take no
// answer: the server stops to read from them.
func TestPublishersThatNeverReadAcknowledgements(t *testing.T) {
	const publishers = 4
	d := unlimited(t)
	n := newNeighbour(t, d)
	stuck := make(chan struct{}, publishers)
	for i := range publishers {
		r := aggregatortest.DialRaw(t, d.Socket, deaf)
		id := r.Open(weftv1.Publisher_Publish_FullMethodName)
		go r.Read(nil)
		go func() {
			told := sync.OnceFunc(func() { stuck <- struct{}{} })
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			name := fmt.Sprintf("deaf-%d", i)
			next := aggregatortest.Message(deafUpdate(name, 1))
			for n := uint64(1); ; {
				ok, err := r.SendWithin(id, next)
				switch {
				case err != nil:
					return
				case ok:
					n++
					next = aggregatortest.Message(deafUpdate(name, n))
				default:
					// The window is full; more as soon as there is room.
					told()
					<-tick.C
				}
			}
		}()
	}
	for range publishers {
		<-stuck
	}
	n.works(t, "beside publishers that read nothing")
	// Each has a window of 1 MiB full of bytes, in buffers that may be as large
	// again three times, and 256 updates with their answers in flight.
	n.bounded(t, "publishers that read nothing", publishers*(4+12)<<20)
}

// deafUpdate is the nth update of a publisher: a snapshot, and then patches, of
// which every second is refused at length.
func deafUpdate(name string, n uint64) *weftv1.PublishRequest {
	if n == 1 {
		f := table()
		f.Name, f.Tables[0].Name = name, name
		return &weftv1.PublishRequest{Id: n, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}
	}
	e := &weftv1.ElementPatch{Set: "blocked"}
	for k := range 40 {
		key := fmt.Sprintf("10.2.0.%d", k)
		if n&1 == 0 {
			key = "nonsense"
		}
		e.Add = append(e.Add, &weftv1.Element{Key: key, Comment: strings.Repeat("c", 100)})
	}
	return &weftv1.PublishRequest{Id: n, Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{
		Fragment: name, Tables: []*weftv1.TablePatch{{Family: "inet", Name: name, Elements: []*weftv1.ElementPatch{e}}},
	}}}
}

// TestWatchersThatNeverRead are dropped, and cost what their buffers hold.
func TestWatchersThatNeverRead(t *testing.T) {
	const watchers = 20
	d := unlimited(t)
	n := newNeighbour(t, d)
	var all []*aggregatortest.Raw
	for range watchers {
		r := aggregatortest.DialRaw(t, d.Socket, deaf)
		id := r.Open(weftv1.Inspect_Watch_FullMethodName)
		must(t, r.Send(id, aggregatortest.Message(&weftv1.WatchRequest{}), true))
		r.Read(aggregatortest.Headers(1))
		all = append(all, r)
	}
	// More than fits into what the transport holds for one, and its queue.
	for range 60 {
		n.works(t, "beside watchers that read nothing")
	}
	n.bounded(t, "watchers that read nothing", watchers*512<<10)
	for _, r := range all[:3] {
		for _, id := range []uint32{0, 1} {
			must(t, r.Frames().WriteWindowUpdate(id, 1<<20))
		}
		r.Read(func(http2.Frame) bool { return r.Ended(1) != "" })
		if r.Ended(1) != "8" {
			t.Errorf("a slow watcher ends with status %q: want 8, RESOURCE_EXHAUSTED", r.Ended(1))
		}
	}
}

// TestSnapshotsWithoutAnEnd sends parts of snapshots and never the last. What
// they hold is free when their streams end.
func TestSnapshotsWithoutAnEnd(t *testing.T) {
	const streams = 4
	d := unlimited(t)
	n := newNeighbour(t, d)
	sent := 0
	for i := range streams {
		r := aggregatortest.DialRaw(t, d.Socket)
		id := r.Open(weftv1.Publisher_Publish_FullMethodName)
		go r.Read(nil)
		for part := range 4 {
			f := table()
			f.Name = fmt.Sprintf("half-%d", i)
			f.Tables[0].Sets[0].Elements = nil
			for k := range 4000 {
				f.Tables[0].Sets[0].Elements = append(f.Tables[0].Sets[0].Elements, &weftv1.Element{Key: fmt.Sprintf("10.%d.%d.%d", part, k>>8, k&255)})
			}
			if part > 0 {
				f.Tables[0].Sets[0].Type = ""
			}
			b := aggregatortest.Message(&weftv1.PublishRequest{Id: 1, More: true, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}})
			aggregatortest.Eventually(t, "the server reads", func() bool {
				ok, err := r.SendWithin(id, b)
				return ok || err != nil
			})
			sent += len(b)
		}
	}
	n.works(t, "beside unfinished snapshots")
	n.bounded(t, "unfinished snapshots", 16*sent)
	list, err := d.Dial(t, "tester").List(aggregatortest.Context(t))
	if err != nil || len(list.GetFragments()) != 1 {
		t.Errorf("fragments %v, error %v: want the neighbour's only", list, err)
	}
}

// TestUnfinishedMessages sends all but the end of more messages than the server keeps: the call that
// is too much is refused, and the others of the connection go on.
func TestUnfinishedMessages(t *testing.T) {
	d := unlimited(t)
	n := newNeighbour(t, d)
	r := aggregatortest.DialRaw(t, d.Socket)
	var all []uint32
	for range 12 {
		id := r.Open(weftv1.Publisher_Apply_FullMethodName)
		must(t, r.Send(id, []byte{0, 0, 0xff, 0xff, 0xff}, false))
		all = append(all, id)
	}
	go r.Read(nil)
	refused := func() int { return slices.IndexFunc(all, func(id uint32) bool { return r.Ended(id) != "" }) }
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for refused() < 0 {
		sent := false
		for _, id := range all {
			ok, err := r.SendWithin(id, make([]byte, 16<<10))
			must(t, err)
			sent = sent || ok
		}
		if !sent {
			<-tick.C
		}
	}
	if got := r.Ended(all[refused()]); got != "8" || r.Gone() {
		t.Errorf("status %q, closed %v: want 8, RESOURCE_EXHAUSTED, and an open connection", got, r.Gone())
	}
	n.works(t, "beside unfinished messages")
	n.bounded(t, "unfinished messages", 200<<20)
}

// TestMessagesThatAreTooLarge announces messages of 4 GiB, and sends a little of
// each.
func TestMessagesThatAreTooLarge(t *testing.T) {
	d := unlimited(t)
	n := newNeighbour(t, d)
	r := aggregatortest.DialRaw(t, d.Socket)
	var all []uint32
	for range 100 {
		id := r.Open(weftv1.Publisher_Publish_FullMethodName)
		must(t, r.Send(id, append([]byte{0, 0xff, 0xff, 0xff, 0xff}, make([]byte, 200)...), false))
		all = append(all, id)
	}
	go r.Read(nil)
	for _, id := range all {
		aggregatortest.Eventually(t, "the call is refused", func() bool { return r.Ended(id) == "8" })
	}
	n.bounded(t, "refused messages", 16<<20)
	n.works(t, "after messages that are too large")
}

// TestFloods never reads, and sends what has to be answered: pings, settings, and
// streams that are reset at once.
func TestFloods(t *testing.T) {
	d := unlimited(t)
	n := newNeighbour(t, d)
	for name, flood := range map[string]func(r *aggregatortest.Raw) error{
		"pings":    func(r *aggregatortest.Raw) error { return r.Frames().WritePing(false, [8]byte{}) },
		"settings": func(r *aggregatortest.Raw) error { return r.Frames().WriteSettings() },
		"resets": func(r *aggregatortest.Raw) error {
			id := r.Next
			r.Next += 2
			if err := r.Frames().WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, request); err != nil {
				return err
			}
			return r.Frames().WriteRSTStream(id, http2.ErrCodeCancel)
		},
		"empty frames": func(r *aggregatortest.Raw) error {
			if r.Next == 1 {
				r.Open(weftv1.Publisher_Publish_FullMethodName)
			}
			return r.Frames().WriteData(1, false, nil)
		},
		"unknown frames": func(r *aggregatortest.Raw) error { return r.Frames().WriteRawFrame(0xfe, 0xff, 77, make([]byte, 100)) },
	} {
		r := aggregatortest.DialRaw(t, d.Socket)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20_000 {
				if flood(r) != nil {
					// It was closed for that.
					return
				}
			}
		}()
		n.works(t, "during a flood of "+name)
		// A flood may be stuck, because the server does not read.
		_ = r.Connection().Close()
		<-done
	}
	aggregatortest.Eventually(t, "the memory of floods is free", func() bool { return memory()-n.memory < 16<<20 })
}

// request is the header block of a call of List, without a dynamic table.
var request = func() []byte {
	var b bytes.Buffer
	b.WriteByte(0x83) // :method POST
	b.WriteByte(0x86) // :scheme http
	for _, h := range [][2]string{{":path", weftv1.Inspect_ListFragments_FullMethodName}, {":authority", "l"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		b.WriteByte(0)
		for _, s := range h {
			b.WriteByte(byte(len(s)))
			b.WriteString(s)
		}
	}
	return b.Bytes()
}()

// TestDeepNesting sends what is nested without end, in the encoding and in texts.
func TestDeepNesting(t *testing.T) {
	d, conn := start(t, &aggregatortest.Kernel{})
	ctx := aggregatortest.Context(t)
	// Groups, which no message of ours has, within groups.
	deep := bytes.Repeat([]byte{0x7b}, 4<<20)
	wantCode(t, conn.Invoke(ctx, weftv1.Publisher_Apply_FullMethodName, deep, &weftv1.ApplyResponse{}, grpc.ForceCodec(rawCodec{})),
		codes.InvalidArgument, "the request cannot be decoded")
	c := d.Dial(t, "tester")
	refused := func(what string, f *weftv1.Fragment) {
		t.Helper()
		if _, err := c.Apply(aggregatortest.Context(t), f); !errors.As(err, new(*client.RejectedError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, open := range []string{"(", "{", "[", "tcp dport { ", "jump { ", "\"", "a . ", "1-", "! ", "- ", "include \"", "@"} {
		f := table()
		f.Tables[0].Chains = []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: strings.Repeat(open, admission.MaxRuleText/len(open))}}}}
		refused("rule of "+open, f)
		f = table()
		f.Tables[0].Sets[0].Elements = []*weftv1.Element{{Key: strings.Repeat(open, admission.MaxElementText/len(open))}}
		refused("element of "+open, f)
		refused("file of "+open, &weftv1.Fragment{Name: "file", Nft: "table ip t { chain c { " + strings.Repeat(open, (256<<10)/len(open))})
	}
	must(t, errorOf(c.Apply(ctx, table())))
}

// TestLargeMetadata sends more metadata than there may be.
func TestLargeMetadata(t *testing.T) {
	d := unlimited(t)
	n := newNeighbour(t, d)
	r := aggregatortest.DialRaw(t, d.Socket)
	block := bytes.Clone(request)
	for range 200 {
		block = append(block, 0, 1, 'x', 100)
		block = append(block, bytes.Repeat([]byte{'y'}, 100)...)
	}
	must(t, r.Frames().WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:16<<10]}))
	must(t, r.Frames().WriteContinuation(1, true, block[16<<10:]))
	refused := false
	r.Read(func(f http2.Frame) bool {
		reset, ok := f.(*http2.RSTStreamFrame)
		refused = ok && reset.StreamID == 1
		return refused
	})
	if !refused && !r.Gone() {
		t.Error("a call with 20 KiB of metadata is taken")
	}
	n.works(t, "after large metadata")
}

// unlimited starts a daemon without a commit rate: what is measured is what
// callers do to each other.
func unlimited(t testing.TB) *aggregatortest.Daemon {
	return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Rate: rate.Inf, Burst: 1}})
}

// neighbour is a well-behaved publisher beside the others.
type neighbour struct {
	session *client.Session
	// memory is what the process held when the neighbour came.
	memory int
}

func newNeighbour(t testing.TB, d *aggregatortest.Daemon) *neighbour {
	s := d.Dial(t, "neighbour").Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return neighbourFragment() }})
	t.Cleanup(func() { _ = s.Close() })
	must(t, errorOf(s.Put(aggregatortest.Context(t), neighbourFragment())))
	return &neighbour{s, memory()}
}

// bounded fails if others hold more than so many bytes.
func (n *neighbour) bounded(t testing.TB, others string, most int) {
	t.Helper()
	used := memory() - n.memory
	t.Logf("%s hold %d KiB", others, used>>10)
	if used > most {
		t.Errorf("%s hold %d bytes: at most %d are wanted", others, used, most)
	}
}

func neighbourFragment() *weftv1.Fragment {
	f := table()
	f.Name, f.Tables[0].Name = "beside", "beside"
	return f
}

// works makes updates and says how long they took. One that waits for somebody else fails.
func (n *neighbour) works(t testing.TB, when string) {
	t.Helper()
	ctx := aggregatortest.Context(t)
	var took []time.Duration
	for i := range 50 {
		began := time.Now()
		_, err := n.session.Patch(ctx, &weftv1.Patch{Fragment: "beside", Tables: []*weftv1.TablePatch{{Family: "inet", Name: "beside", Elements: []*weftv1.ElementPatch{{
			Set: "blocked", Add: []*weftv1.Element{{Key: fmt.Sprintf("10.1.0.%d", i)}}, Remove: []string{fmt.Sprintf("10.1.0.%d", i-1)},
		}}}}})
		if i == 0 {
			// There is no 10.1.0.-1.
			continue
		}
		if err != nil {
			t.Fatalf("%s: update %d of the neighbour: %v", when, i, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%s: updates of the neighbour take %v (median), %v (99 %%), %v (most)", when, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}

// TestRefusedCallsLeaveNothing makes calls that are refused and have a deadline in an hour. What
// the server keeps of one until then, if anything, is more than 300 bytes.
func TestRefusedCallsLeaveNothing(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	a := newAPI(dial(t, d.Socket))
	ctx := metadata.AppendToOutgoingContext(aggregatortest.Context(t), server.PublisherKey, "one", server.PublisherKey, "two")
	refused := func() {
		ctx, cancel := context.WithDeadline(ctx, time.Now().Add(time.Hour))
		defer cancel()
		wantCode(t, errorOf(a.Apply(ctx, &weftv1.ApplyRequest{})), codes.InvalidArgument, "is given 2 times")
	}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // and what the first one found in pools
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range 100 {
		refused()
	}
	const calls = 5000
	before := live()
	for range calls {
		refused()
	}
	if after := live(); after > before+calls*100 {
		t.Errorf("%d refused calls leave %d bytes", calls, after-before)
	}
}
