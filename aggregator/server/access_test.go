package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// configured is a daemon with a configuration.
type configured struct {
	*aggregatortest.Daemon
	kernel  *aggregatortest.Kernel
	control *access.Control
	file    string
	log     lines
}

// startConfigured starts one, with a socket that its group reaches. Limits change the
// configuration of the server.
func startConfigured(t *testing.T, text string, limits ...func(*server.Config)) *configured {
	t.Helper()
	socket := aggregatortest.Socket(t)
	must(t, os.Chmod(filepath.Dir(socket), 0o755))
	d := &configured{kernel: &aggregatortest.Kernel{}, file: filepath.Join(t.TempDir(), "weft.yaml")}
	d.write(t, text)
	log := slog.New(slog.NewTextHandler(&d.log, nil))
	control, err := access.Open(access.Options{File: d.file, Logger: log})
	must(t, err)
	d.control = control
	d.Daemon = aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: d.kernel, Access: control, Logger: log}, Socket: socket,
		Limits: func(c *server.Config) {
			for _, limit := range limits {
				limit(c)
			}
		},
	})
	return d
}

// write writes the configuration: what follows its head.
func (d *configured) write(t *testing.T, text string) {
	t.Helper()
	must(t, os.WriteFile(d.file, []byte("apiVersion: weft.dev/v1alpha1\nkind: Configuration\n"+text), 0o600))
}

// user connects as a user of the socket's group, 4000.
func (d *configured) user(t *testing.T, uid uint32) *grpc.ClientConn {
	t.Helper()
	return aggregatortest.DialAs(t, d.Socket, aggregatortest.User{UID: uid, GID: 5000, Groups: []uint32{4000}})
}

func (d *configured) reload(t *testing.T, text string) {
	t.Helper()
	d.write(t, text)
	must(t, d.control.Reload())
}

// fragment is one in the publisher's own table.
func fragment(table string) *weftv1.Fragment {
	f := tableFragment("list")
	f.Tables[0].Name = table
	return f
}

func tableFragment(name string) *weftv1.Fragment {
	f := table()
	f.Name = name
	return f
}

func as(ctx context.Context, publisher string) context.Context {
	if publisher == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, server.PublisherKey, publisher)
}

// publish opens a Publish stream.
func publish(t *testing.T, conn *grpc.ClientConn, publisher string) grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse] {
	t.Helper()
	s, err := newAPI(conn).Publish(as(aggregatortest.Context(t), publisher))
	must(t, err)
	return s
}

func snapshot(id uint64, f *weftv1.Fragment) *weftv1.PublishRequest {
	return &weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}
}

// committed sends a snapshot that has to be committed.
func committed(t *testing.T, s grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse], id uint64, f *weftv1.Fragment) {
	t.Helper()
	must(t, s.Send(snapshot(id, f)))
	resp, err := s.Recv()
	if err != nil || resp.GetId() != id || resp.GetCommitted() == nil {
		t.Fatalf("update %d: %v, error %v", id, resp, err)
	}
}

func TestPeersOfOtherUsers(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	exe, err := os.Executable()
	must(t, err)
	d := startConfigured(t, `
socketGroup: 4000
publishers:
- {name: one, match: {uid: 4001}}
- {name: two, match: {uid: 4001, gid: 4100}}
- {name: three, match: {gid: 4200, executable: `+exe+`}}
- {name: wrong, match: {gid: 4200, executable: /bin/true}}
- {name: here, match: {uid: 4010, cgroup: "/**"}}
`)
	member := []uint32{4000}
	for _, tt := range []struct {
		name, publisher, table string
		user                   aggregatortest.User
		code                   codes.Code
		text                   string
	}{
		{"by its name", "one", "one", aggregatortest.User{UID: 4001, GID: 5000, Groups: member}, 0, ""},
		{"not in the group", "two", "two", aggregatortest.User{UID: 4001, GID: 5000, Groups: member}, codes.PermissionDenied, `uid 4001 may not act as publisher "two": ` + d.file + " lets it act as one"},
		{"in the group", "two", "two", aggregatortest.User{UID: 4001, GID: 5000, Groups: []uint32{4000, 4100}}, 0, ""},
		{"by its primary group", "two", "two", aggregatortest.User{UID: 4001, GID: 4100, Groups: member}, 0, ""},
		{"the first of two", "", "one", aggregatortest.User{UID: 4001, GID: 4100, Groups: member}, 0, ""},
		{"by the executable", "", "three", aggregatortest.User{UID: 4003, GID: 4200, Groups: member}, 0, ""},
		{"by another executable", "wrong", "wrong", aggregatortest.User{UID: 4003, GID: 4200, Groups: member}, codes.PermissionDenied, "lets it act as three"},
		{"by the cgroup", "", "here", aggregatortest.User{UID: 4010, GID: 5000, Groups: member}, 0, ""},
		{"in many groups", "two", "two", aggregatortest.User{UID: 4001, GID: 5000, Groups: append(manyGroups(300), 4000, 4100)}, 0, ""},
		{"a stranger", "", "x", aggregatortest.User{UID: 4002, GID: 5000, Groups: member}, codes.PermissionDenied, "uid 4002 may not call the aggregator: no publisher in " + d.file + " matches it"},
		{"its own table alone", "", "two", aggregatortest.User{UID: 4001, GID: 5000, Groups: member}, codes.PermissionDenied, "publisher one may not use table inet two: allowed tables are one"},
		{"not of the socket's group", "", "one", aggregatortest.User{UID: 4001, GID: 5000}, codes.Unavailable, "permission denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := newAPI(aggregatortest.DialAs(t, d.Socket, tt.user))
			_, err := api.Apply(as(aggregatortest.Context(t), tt.publisher), &weftv1.ApplyRequest{Fragment: fragment(tt.table)})
			if tt.code == 0 {
				must(t, err)
				return
			}
			wantCode(t, err, tt.code, tt.text)
		})
	}
	for _, want := range []string{"pid=" + fmt.Sprint(os.Getpid()), "uid=4002", "executable=" + exe, "limit=caller", "limit=publisher", "limit=tables"} {
		if !strings.Contains(d.log.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, d.log.String())
		}
	}
}

func manyGroups(n int) []uint32 {
	groups := make([]uint32, n)
	for i := range groups {
		groups[i] = uint32(10_000 + i)
	}
	return groups
}

// TestRate: a stream waits for its turn, and nothing of it is lost; a call that
// would have to wait long is told to come back.
func TestRate(t *testing.T) {
	const rate, updates = 20, 6
	d := startConfigured(t, fmt.Sprintf("publishers: [{name: one, match: {uid: 4001}, limits: {updatesPerSecond: %d, burst: 1}}]\n", rate))
	conn := dial(t, d.Socket)
	s := publish(t, conn, "one")
	began := time.Now()
	for i := range uint64(updates) {
		f := fragment("one")
		f.Name = fmt.Sprintf("f%d", i)
		// In two parts, which count once.
		first := snapshot(i, f)
		first.More = true
		must(t, s.Send(first))
		must(t, s.Send(snapshot(i, &weftv1.Fragment{Name: f.Name})))
	}
	for i := range uint64(updates) {
		resp, err := s.Recv()
		if err != nil || resp.GetId() != i || resp.GetCommitted() == nil {
			t.Fatalf("update %d: %v, error %v", i, resp, err)
		}
	}
	if took, least := time.Since(began), time.Second*(updates-1)/rate; took < least {
		t.Errorf("%d updates took %v: want at least %v", updates, took, least)
	}

	// One in a thousand seconds: the next has to wait.
	d.reload(t, "publishers: [{name: one, match: {uid: 4001}, limits: {updatesPerSecond: 0.001}}]\n")
	api := newAPI(conn)
	ctx := as(aggregatortest.Context(t), "one")
	var err error
	for range 3 {
		if _, err = api.Apply(ctx, &weftv1.ApplyRequest{Fragment: fragment("one")}); err != nil {
			break
		}
	}
	wantCode(t, err, codes.ResourceExhausted, "0.001 a second are allowed, and 1 at once: retry in ")
	if details := status.Convert(err).Details(); len(details) != 2 {
		t.Errorf("details %v", details)
	}
	// A message that is not an update does not wait.
	must(t, errorOf(api.List(ctx, &weftv1.ListFragmentsRequest{})))
	// A stream that waits goes on with another rate.
	must(t, s.Send(snapshot(100, fragment("one"))))
	d.reload(t, "publishers: [{name: one, match: {uid: 4001}}]\n")
	resp, err := s.Recv()
	if err != nil || resp.GetId() != 100 || resp.GetCommitted() == nil {
		t.Fatalf("the update that waited: %v, error %v", resp, err)
	}
	if !strings.Contains(d.log.String(), "limit=updatesPerSecond") {
		t.Errorf("log %s", d.log.String())
	}
}

// TestStopDoesNotWaitForThePaced: the daemon stops while a stream waits.
func TestStopDoesNotWaitForThePaced(t *testing.T) {
	d := startConfigured(t, "publishers: [{name: one, match: {uid: 4001}, limits: {updatesPerSecond: 0.001}}]\n")
	s := publish(t, dial(t, d.Socket), "one")
	committed(t, s, 1, fragment("one"))
	must(t, s.Send(snapshot(2, fragment("one"))))
	stopped := make(chan error, 1)
	go func() { stopped <- d.Stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(aggregatortest.Wait):
		t.Fatal("the daemon does not stop")
	}
	_, err := s.Recv()
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestRightToRead watches and reads while the right to read is given, and then not any more. Fragments of others are
// deleted by administrators alone.
func TestRightToRead(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	const one = "socketGroup: 4000\npublishers:\n- {name: one, match: {uid: 4001}}\n- {name: boss, match: {uid: 4009}, admin: true}\n"
	d := startConfigured(t, one+"- {name: two, match: {uid: 4002}, read: true}\n")
	ctx := aggregatortest.Context(t)
	writer, reader, boss := newAPI(d.user(t, 4001)), newAPI(d.user(t, 4002)), newAPI(d.user(t, 4009))
	watch, err := reader.Watch(ctx, &weftv1.WatchRequest{})
	must(t, err)
	must(t, errorOf(watch.Header()))
	apply := func(a api, table string) {
		t.Helper()
		must(t, errorOf(a.Apply(ctx, &weftv1.ApplyRequest{Fragment: fragment(table)})))
	}
	next := func(want string) {
		t.Helper()
		e, err := watch.Recv()
		if err != nil || len(e.GetCommit().GetFragments()) != 1 || e.GetCommit().GetFragments()[0].GetPublisher() != want {
			t.Fatalf("event %v, error %v: want a commit of %s", e, err, want)
		}
	}
	list := &weftv1.FragmentName{Publisher: "one", Name: "list"}
	apply(writer, "one")
	next("one")
	must(t, errorOf(reader.Get(ctx, &weftv1.GetFragmentRequest{Fragment: list})))
	d.reload(t, one+"- {name: two, match: {uid: 4002}}\n")
	wantCode(t, errorOf(reader.Get(ctx, &weftv1.GetFragmentRequest{Fragment: list})),
		codes.PermissionDenied, "publisher two may not read fragment one/list: it belongs to other publishers (no read at ")
	wantCode(t, errorOf(reader.Delete(ctx, &weftv1.DeleteRequest{Fragment: list})),
		codes.PermissionDenied, "publisher two may not touch fragments of one")
	must(t, errorOf(boss.Get(ctx, &weftv1.GetFragmentRequest{Fragment: list})))
	must(t, errorOf(boss.Delete(ctx, &weftv1.DeleteRequest{Fragment: list})))
	apply(reader, "two")
	next("two")
}

func TestReloadKeepsSessions(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	d := startConfigured(t, "socketGroup: 4000\npublishers:\n- {name: one, match: {uid: 4001}}\n- {name: two, match: {uid: 4002}}\n")
	conn := d.user(t, 4001)
	one, two := publish(t, conn, "one"), publish(t, d.user(t, 4002), "")
	watch, err := newAPI(conn).Watch(aggregatortest.Context(t), &weftv1.WatchRequest{})
	must(t, err)
	must(t, errorOf(watch.Header()))
	health, err := healthv1.NewHealthClient(conn).Watch(aggregatortest.Context(t), &healthv1.HealthCheckRequest{})
	must(t, err)
	committed(t, one, 1, fragment("one"))
	committed(t, two, 1, fragment("two"))

	// Other rights: the session goes on, the next update is judged by them.
	d.reload(t, "socketGroup: 4000\npublishers:\n- {name: one, match: {uid: 4001}, allow: {tables: [{name: other}]}}\n- {name: two, match: {uid: 4002}}\n")
	must(t, one.Send(snapshot(2, fragment("one"))))
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
	wantCode(t, errorOf(one.Recv()), codes.PermissionDenied, "uid 4001 may not call the aggregator")
	for err = nil; err == nil; {
		_, err = watch.Recv()
	}
	wantCode(t, err, codes.PermissionDenied, "uid 4001 may not call the aggregator")
	for err = nil; err == nil; {
		_, err = health.Recv()
	}
	wantCode(t, err, codes.PermissionDenied, "uid 4001 may not call the aggregator")
	wantCode(t, errorOf(newAPI(conn).List(aggregatortest.Context(t), &weftv1.ListFragmentsRequest{})), codes.PermissionDenied, "uid 4001")
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
	s := publish(t, d.user(t, 4001), "")
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
	must(t, err)
	d.control = control
	socket := filepath.Join(dir, "weft.sock")
	d.Daemon = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: d.kernel, Access: control}, Socket: socket})
	group := func(path string) (uint32, os.FileMode) {
		st, err := os.Stat(path)
		must(t, err)
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
