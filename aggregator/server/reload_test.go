package server_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

func TestReloadKeepsSessions(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	d := startConfigured(t, "socketGroup: 4000\npublishers:\n- {name: one, match: {uid: 4001}}\n- {name: two, match: {uid: 4002}}\n")
	member := []uint32{4000}
	conn := aggregatortest.DialAs(t, d.Socket, aggregatortest.User{UID: 4001, GID: 5000, Groups: member})
	one, two := publish(t, conn, "one"), publish(t, aggregatortest.DialAs(t, d.Socket, aggregatortest.User{UID: 4002, GID: 5000, Groups: member}), "")
	watch, err := newAPI(conn).Watch(aggregatortest.Context(t), &weftv1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Header(); err != nil {
		t.Fatal(err)
	}
	health, err := healthv1.NewHealthClient(conn).Watch(aggregatortest.Context(t), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	committed(t, one, 1, fragment("one"))
	committed(t, two, 1, fragment("two"))

	// Other rights: the session goes on, the next update is judged by them.
	d.reload(t, "socketGroup: 4000\npublishers:\n- {name: one, match: {uid: 4001}, allow: {tables: [{name: other}]}}\n- {name: two, match: {uid: 4002}}\n")
	if err := one.Send(snapshot(2, fragment("one"))); err != nil {
		t.Fatal(err)
	}
	resp, err := one.Recv()
	if err != nil || len(resp.GetRejected().GetViolations()) != 1 || resp.GetRejected().GetViolations()[0].GetReason() != weftv1.Violation_REASON_PERMISSION {
		t.Fatalf("an update without its right: %v, error %v", resp, err)
	}
	other := fragment("other")
	other.Name = "second"
	committed(t, one, 3, other)

	// A broken file changes nothing.
	d.write(t, "publishers: 1\n")
	if err := d.control.Reload(); err == nil {
		t.Fatal("a broken file was read")
	}
	committed(t, one, 4, other)

	// A peer that is not a publisher any more is disconnected, the others are not;
	// what is committed stays.
	d.reload(t, "socketGroup: 4000\npublishers:\n- {name: two, match: {uid: 4002}}\n")
	_, err = one.Recv()
	wantCode(t, err, codes.PermissionDenied, "uid 4001 may not call the aggregator")
	for err = nil; err == nil; {
		_, err = watch.Recv()
	}
	wantCode(t, err, codes.PermissionDenied, "uid 4001 may not call the aggregator")
	for err = nil; err == nil; {
		_, err = health.Recv()
	}
	wantCode(t, err, codes.PermissionDenied, "uid 4001 may not call the aggregator")
	_, err = newAPI(conn).List(aggregatortest.Context(t), &weftv1.ListFragmentsRequest{})
	wantCode(t, err, codes.PermissionDenied, "uid 4001")
	committed(t, two, 2, fragment("two"))
	list, _ := d.Aggregator.List()
	if len(list) != 3 {
		t.Errorf("fragments %v", list)
	}
}

// TestStreamThatIsNotReadEnds: a caller that lost its publisher cannot keep its
// stream by not reading what is sent to it.
func TestStreamThatIsNotReadEnds(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	d := startConfigured(t, "socketGroup: 4000\npublishers: [{name: one, match: {uid: 4001}}]\n")
	s := publish(t, aggregatortest.DialAs(t, d.Socket, aggregatortest.User{UID: 4001, GID: 5000, Groups: []uint32{4000}}), "")
	committed(t, s, 1, fragment("one"))
	watch, presence := context.WithCancel(aggregatortest.Context(t))
	defer presence()
	started, left := make(chan struct{}), make(chan struct{})
	go func() {
		_ = d.Aggregator.Watch(watch, func() error { close(started); return nil }, func(e *weftv1.WatchResponse) error {
			if p := e.GetPresence(); p != nil && !p.GetConnected() {
				close(left)
				return context.Canceled
			}
			return nil
		})
	}()
	<-started
	// Far more acknowledgements than what the client's window holds (64 KiB).
	go func() {
		for i := range uint64(20_000) {
			if s.Send(&weftv1.PublishRequest{Id: i + 2, Update: &weftv1.PublishRequest_Withdraw{Withdraw: "none"}}) != nil {
				return
			}
		}
	}()
	d.awaitBlocked(t)
	d.reload(t, "socketGroup: 4000\n")
	select {
	case <-left:
	case <-time.After(aggregatortest.Wait):
		t.Fatal("the session is still there")
	}
}

// awaitBlocked waits until a goroutine is stuck in sending an acknowledgement.
func (d *configured) awaitBlocked(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	aggregatortest.Eventually(t, "sending is blocked", func() bool {
		for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if head, _, _ := strings.Cut(g, "\n"); strings.Contains(head, "[select") && strings.Contains(g, "grpc.(*serverStream).SendMsg") {
				return true
			}
		}
		return false
	})
}

func TestSocketGroupFollowsTheConfiguration(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	dir := filepath.Join(t.TempDir(), "run")
	d := &configured{file: filepath.Join(t.TempDir(), "weft.yaml"), kernel: &aggregatortest.Kernel{}}
	d.write(t, "socketGroup: 4000\n")
	control, err := access.Open(access.Options{File: d.file})
	if err != nil {
		t.Fatal(err)
	}
	d.control = control
	socket := filepath.Join(dir, "weft.sock")
	d.Daemon = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: d.kernel, Access: control}, Socket: socket})
	group := func(path string) (uint32, os.FileMode) {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok {
			t.Fatal("no stat")
		}
		return sys.Gid, st.Mode().Perm()
	}
	check := func(want uint32) bool {
		gid, mode := group(socket)
		dgid, dmode := group(dir)
		return gid == want && dgid == want && mode == 0o660 && dmode == 0o750
	}
	if !check(4000) {
		t.Fatal("the socket and its directory are not the group's")
	}
	d.reload(t, "socketGroup: 4321\n")
	aggregatortest.Eventually(t, "the socket is the other group's", func() bool { return check(4321) })
	d.reload(t, "")
	aggregatortest.Eventually(t, "the socket is the daemon's own again", func() bool { return check(uint32(os.Getegid())) })
}
