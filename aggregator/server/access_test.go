package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

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
	if err := os.Chmod(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	d := &configured{kernel: &aggregatortest.Kernel{}, file: filepath.Join(t.TempDir(), "weft.yaml")}
	d.write(t, text)
	log := slog.New(slog.NewTextHandler(&d.log, nil))
	control, err := access.Open(access.Options{File: d.file, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(d.file, []byte("apiVersion: weft.dev/v1alpha1\nkind: Configuration\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *configured) reload(t *testing.T, text string) {
	t.Helper()
	d.write(t, text)
	if err := d.control.Reload(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func snapshot(id uint64, f *weftv1.Fragment) *weftv1.PublishRequest {
	return &weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}
}

// committed sends a snapshot that has to be committed.
func committed(t *testing.T, s grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse], id uint64, f *weftv1.Fragment) {
	t.Helper()
	if err := s.Send(snapshot(id, f)); err != nil {
		t.Fatal(err)
	}
	resp, err := s.Recv()
	if err != nil || resp.GetId() != id || resp.GetCommitted() == nil {
		t.Fatalf("update %d: %v, error %v", id, resp, err)
	}
}

func TestPeersOfOtherUsers(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := startConfigured(t, `
socketGroup: 4000
publishers:
- {name: one, match: {uid: 4001}}
- {name: two, match: {uid: 4001, gid: 4100}}
- {name: three, match: {gid: 4200, executable: `+exe+`}}
- {name: wrong, match: {gid: 4200, executable: /bin/true}}
- {name: boss, match: {uid: 4009}, admin: true}
- {name: here, match: {uid: 4010, cgroup: "/**"}}
- {name: there, match: {uid: 4010, cgroup: /no/such/cgroup}}
`)
	member := []uint32{4000}
	for _, tt := range []struct {
		name, publisher, table string
		user                   aggregatortest.User
		code                   codes.Code
		text                   string
	}{
		{"first match", "", "one", aggregatortest.User{UID: 4001, GID: 5000, Groups: member}, 0, ""},
		{"by its name", "one", "one", aggregatortest.User{UID: 4001, GID: 5000, Groups: member}, 0, ""},
		{"not in the group", "two", "two", aggregatortest.User{UID: 4001, GID: 5000, Groups: member}, codes.PermissionDenied, `uid 4001 may not act as publisher "two": ` + d.file + " lets it act as one"},
		{"in the group", "two", "two", aggregatortest.User{UID: 4001, GID: 5000, Groups: []uint32{4000, 4100}}, 0, ""},
		{"by its primary group", "two", "two", aggregatortest.User{UID: 4001, GID: 4100, Groups: member}, 0, ""},
		{"the first of two", "", "one", aggregatortest.User{UID: 4001, GID: 4100, Groups: member}, 0, ""},
		{"by the executable", "", "three", aggregatortest.User{UID: 4003, GID: 4200, Groups: member}, 0, ""},
		{"by another executable", "wrong", "wrong", aggregatortest.User{UID: 4003, GID: 4200, Groups: member}, codes.PermissionDenied, "lets it act as three"},
		{"by the cgroup", "", "here", aggregatortest.User{UID: 4010, GID: 5000, Groups: member}, 0, ""},
		{"by another cgroup", "there", "there", aggregatortest.User{UID: 4010, GID: 5000, Groups: member}, codes.PermissionDenied, "lets it act as here"},
		{"in many groups", "two", "two", aggregatortest.User{UID: 4001, GID: 5000, Groups: append(manyGroups(300), 4000, 4100)}, 0, ""},
		{"a stranger", "", "x", aggregatortest.User{UID: 4002, GID: 5000, Groups: member}, codes.PermissionDenied, "uid 4002 may not call the aggregator: no publisher in " + d.file + " matches it"},
		{"a stranger by a name", "one", "one", aggregatortest.User{UID: 4002, GID: 5000, Groups: member}, codes.PermissionDenied, "no publisher"},
		{"its own table alone", "", "two", aggregatortest.User{UID: 4001, GID: 5000, Groups: member}, codes.PermissionDenied, "publisher one may not use table inet two: allowed tables are one"},
		{"an administrator as another", "nobody", "x", aggregatortest.User{UID: 4009, GID: 5000, Groups: member}, 0, ""},
		{"not of the socket's group", "", "one", aggregatortest.User{UID: 4001, GID: 5000}, codes.Unavailable, "permission denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := newAPI(aggregatortest.DialAs(t, d.Socket, tt.user))
			_, err := api.Apply(as(aggregatortest.Context(t), tt.publisher), &weftv1.ApplyRequest{Fragment: fragment(tt.table)})
			if tt.code == 0 {
				if err != nil {
					t.Fatal(err)
				}
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

func TestFragmentsOfOthersAreForAdministrators(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	d := startConfigured(t, "socketGroup: 4000\npublishers:\n- {name: one, match: {uid: 4001}}\n- {name: two, match: {uid: 4002}}\n- {name: boss, match: {uid: 4009}, admin: true}\n")
	ctx := aggregatortest.Context(t)
	client := func(uid uint32) api {
		return newAPI(aggregatortest.DialAs(t, d.Socket, aggregatortest.User{UID: uid, GID: 5000, Groups: []uint32{4000}}))
	}
	one, two, boss := client(4001), client(4002), client(4009)
	if _, err := one.Apply(ctx, &weftv1.ApplyRequest{Fragment: fragment("one")}); err != nil {
		t.Fatal(err)
	}
	_, err := two.Get(ctx, &weftv1.GetFragmentRequest{Fragment: &weftv1.FragmentName{Publisher: "one", Name: "list"}})
	wantCode(t, err, codes.PermissionDenied, "publisher two may not read fragment one/list: it belongs to other publishers (no read at ")
	_, err = two.Delete(ctx, &weftv1.DeleteRequest{Fragment: &weftv1.FragmentName{Publisher: "one", Name: "list"}})
	wantCode(t, err, codes.PermissionDenied, "publisher two may not touch fragments of one")
	if _, err := boss.Get(ctx, &weftv1.GetFragmentRequest{Fragment: &weftv1.FragmentName{Publisher: "one", Name: "list"}}); err != nil {
		t.Error(err)
	}
	if _, err := boss.Delete(ctx, &weftv1.DeleteRequest{Fragment: &weftv1.FragmentName{Publisher: "one", Name: "list"}}); err != nil {
		t.Error(err)
	}
}
