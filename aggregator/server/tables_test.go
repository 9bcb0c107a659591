package server_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// row is a row of the tests' tables.
type row struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

// numbers is a table of so many rows. An argument is added to each.
func numbers(name string, n int) client.Table {
	return client.Table{Name: name, Changes: &client.Changes{}, Rows: func(arguments map[string]string) (iter.Seq[any], error) {
		return func(yield func(any) bool) {
			for i := range n {
				if !yield(row{i, arguments["text"]}) {
					return
				}
			}
		}, nil
	}}
}

// serveTables serves tables until the test or stop ends, and waits until they are registered.
func serveTables(t *testing.T, socket, publisher string, tables ...client.Table) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- client.ServeTables(ctx, client.Config{Socket: socket, Publisher: publisher}, tables...)
	}()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	c, err := client.Dial(aggregatortest.Context(t), client.Config{Socket: socket, Publisher: publisher})
	must(t, err)
	defer c.Close()
	aggregatortest.Eventually(t, "the tables are registered", func() bool {
		_, err := client.ReadRows[row](aggregatortest.Context(t), c, publisher, tables[0].Name, nil)
		return !errors.Is(err, client.ErrNotServed)
	})
	return stop
}

// TestTables reads tables with and without arguments, and those that there are not.
func TestTables(t *testing.T) {
	d := unlimited(t)
	ctx := aggregatortest.Context(t)
	broken := client.Table{Name: "broken", Rows: func(map[string]string) (iter.Seq[any], error) { panic("a bug") }}
	unknown := client.Table{Name: "unknown", Rows: func(map[string]string) (iter.Seq[any], error) { return nil, errors.New("not known yet") }}
	stop := serveTables(t, d.Socket, "one", numbers("many", 20_000), numbers("none", 0), broken, unknown)
	c := d.Dial(t, "reader")
	all, err := client.ReadRows[row](ctx, c, "one", "many", map[string]string{"text": "x"})
	if err != nil || len(all) != 20_000 || all[19_999] != (row{19_999, "x"}) {
		t.Fatalf("%d rows, error %v", len(all), err)
	}
	if all, err = client.ReadRows[row](ctx, c, "one", "none", nil); err != nil || len(all) != 0 {
		t.Errorf("%d rows of none, error %v", len(all), err)
	}
	for table, want := range map[string]string{"broken": "reading the table panicked", "unknown": "not known yet"} {
		wantCode(t, errorOf(client.ReadRows[row](ctx, c, "one", table, nil)), codes.Aborted, want)
	}
	wantCode(t, c.WatchTable(ctx, "one", "unknown", func() {}), codes.Aborted, "cannot be watched")
	for name, publisher := range map[string]string{"many": "two", "other": "one"} {
		if _, err := client.ReadRows[row](ctx, c, publisher, name, nil); !errors.Is(err, client.ErrNotServed) || !strings.Contains(err.Error(), publisher+"/"+name+": no process of publisher "+publisher+" serves it") {
			t.Errorf("table %s of %s: %v", name, publisher, err)
		}
	}
	wantCode(t, errorOf(client.ReadRows[row](ctx, c, "one", "many", map[string]string{"text": strings.Repeat("x", 5<<10)})),
		codes.ResourceExhausted, "want at most 4096")
	stop()
	wantErr(t, "after the end", errorOf(client.ReadRows[row](ctx, c, "one", "many", nil)), client.ErrNotServed)
}

// TestWatchTable tells about changes, and registers again at the next aggregator.
func TestWatchTable(t *testing.T) {
	d := unlimited(t)
	table := numbers("many", 1)
	serveTables(t, d.Socket, "one", table)
	watch := func(d *aggregatortest.Daemon) (changed chan struct{}, ended chan error, stop func()) {
		c := d.Dial(t, "reader")
		ctx, cancel := context.WithCancel(aggregatortest.Context(t))
		changed, ended = make(chan struct{}), make(chan error, 1)
		go func() { ended <- c.WatchTable(ctx, "one", "many", func() { changed <- struct{}{} }) }()
		return changed, ended, cancel
	}
	changed, ended, stop := watch(d)
	for range 3 {
		<-changed
		table.Changes.Notify()
	}
	<-changed
	stop()
	wantErr(t, "the end of a watch", <-ended, context.Canceled)
	must(t, d.Stop())
	again := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}, Socket: d.Socket})
	c := again.Dial(t, "reader")
	aggregatortest.Eventually(t, "the table is registered again", func() bool {
		all, err := client.ReadRows[row](aggregatortest.Context(t), c, "one", "many", nil)
		return err == nil && len(all) == 1
	})
}

// TestLeaving ends answers when one of the two is gone.
func TestLeaving(t *testing.T) {
	d := unlimited(t)
	// The owner is a raw stream.
	own := func(ctx context.Context) grpc.BidiStreamingClient[weftv1.ServeTablesRequest, weftv1.ServeTablesResponse] {
		t.Helper()
		owner, err := weftv1.NewTablesClient(dial(t, d.Socket)).ServeTables(as(ctx, "one"))
		if err == nil {
			err = owner.Send(&weftv1.ServeTablesRequest{Tables: []string{"many"}})
		}
		if err == nil {
			_, err = owner.Header()
		}
		must(t, err)
		return owner
	}
	ctx, leave := context.WithCancel(aggregatortest.Context(t))
	owner := own(ctx)
	read := make(chan error, 1)
	c := d.Dial(t, "reader")
	go func() {
		_, err := client.ReadRows[row](aggregatortest.Context(t), c, "one", "many", nil)
		read <- err
	}()
	if q, err := owner.Recv(); err != nil || q.GetTable() != "many" || q.GetWatch() {
		t.Fatalf("query %v, error %v", q, err)
	}
	leave()
	wantCode(t, <-read, codes.Aborted, "publisher one left before the end of the answer")

	// A reader that leaves ends the stream of the owner.
	owner = own(aggregatortest.Context(t))
	ctx, leave = context.WithCancel(aggregatortest.Context(t))
	go func() { read <- c.WatchTable(ctx, "one", "many", func() {}) }()
	if q, err := owner.Recv(); err != nil || !q.GetWatch() {
		t.Fatalf("query %v, error %v", q, err)
	}
	leave()
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := owner.Recv(); err == nil {
		t.Error("the stream goes on without its reader")
	}
}

// TestSlowReaders read nothing of long answers: others are answered, and the owner publishes.
func TestSlowReaders(t *testing.T) {
	d := unlimited(t)
	serveTables(t, d.Socket, "one", numbers("many", 50_000))
	n := newNeighbour(t, d)
	const slow = 20
	for range slow {
		r := aggregatortest.DialRaw(t, d.Socket, deaf)
		id := r.Open(weftv1.Tables_ReadTable_FullMethodName)
		must(t, r.Send(id, aggregatortest.Message(&weftv1.ReadTableRequest{Publisher: "one", Table: "many"}), true))
	}
	all, err := client.ReadRows[row](aggregatortest.Context(t), d.Dial(t, "reader"), "one", "many", nil)
	if err != nil || len(all) != 50_000 {
		t.Errorf("%d rows beside slow readers, error %v", len(all), err)
	}
	n.works(t, "beside slow readers")
	n.bounded(t, "slow readers", slow<<20)
}

// TestForeignTables: no publisher serves or reads another's tables without the right to.
func TestForeignTables(t *testing.T) {
	d := startConfigured(t, "publishers: [{name: one, match: {uid: 4001}}, {name: evil, match: {uid: 4002}}, {name: reader, match: {uid: 4003}, read: true}]\nsocketGroup: 4000\n")
	ctx := aggregatortest.Context(t)
	serveTables(t, d.Socket, "one", numbers("many", 1))
	tables := func(uid uint32) weftv1.TablesClient {
		return weftv1.NewTablesClient(d.user(t, uid))
	}
	evil := tables(4002)
	pose, err := evil.ServeTables(as(ctx, "one"))
	must(t, err)
	_ = pose.Send(&weftv1.ServeTablesRequest{Tables: []string{"many"}})
	wantCode(t, errorOf(pose.Recv()), codes.PermissionDenied, `uid 4002 may not act as publisher "one"`)
	read := func(c weftv1.TablesClient, publisher string) (n int, err error) {
		stream, err := c.ReadTable(ctx, &weftv1.ReadTableRequest{Publisher: publisher, Table: "many"})
		for err == nil {
			var part *weftv1.ReadTableResponse
			if part, err = stream.Recv(); err == nil {
				n += len(part.GetRows())
			}
		}
		return n, err
	}
	wantCode(t, errorOf(read(evil, "one")),
		codes.PermissionDenied, "publisher evil may not read table one/many: it belongs to other publishers")
	for _, uid := range []uint32{4001, 4003} {
		if n, err := read(tables(uid), "one"); n != 1 {
			t.Errorf("user %d reads %d rows: %v", uid, n, err)
		}
	}
	// A table of the same name is another one.
	serveTables(t, d.Socket, "evil", numbers("many", 7))
	if n, err := read(tables(4003), "one"); n != 1 {
		t.Errorf("%d rows beside a table of the same name: %v", n, err)
	}
}

// TestTableFloods exceeds the limits of registrations and reads.
func TestTableFloods(t *testing.T) {
	d := startConfigured(t, "publishers: [{name: evil, match: {uid: 4002}, read: true}]\nsocketGroup: 4000\n")
	ctx := aggregatortest.Context(t)
	conn := d.user(t, 4002)
	c := weftv1.NewTablesClient(conn)
	register := func(tables ...string) error {
		stream, err := c.ServeTables(ctx)
		if err == nil {
			err = stream.Send(&weftv1.ServeTablesRequest{Tables: tables})
		}
		if err != nil {
			return err
		}
		if header, err := stream.Header(); err == nil && header != nil {
			return nil
		}
		_, err = stream.Recv()
		return err
	}
	wantCode(t, register(), codes.ResourceExhausted, "0 tables, want 1 to 32")
	wantCode(t, register(slices.Repeat([]string{"a"}, 33)...), codes.ResourceExhausted, "33 tables")
	wantCode(t, register("../x"), codes.InvalidArgument, "table")
	stream, err := c.ServeTables(ctx)
	if err == nil {
		_ = stream.Send(&weftv1.ServeTablesRequest{Tables: []string{"a"}})
		_ = stream.Send(&weftv1.ServeTablesRequest{Rows: [][]byte{[]byte("{}")}})
		_, err = stream.Recv()
	}
	wantCode(t, err, codes.InvalidArgument, "rows without a query")
	for i := range 64 {
		aggregatortest.Eventually(t, "room for a registration", func() bool { return register(fmt.Sprint("t", i)) == nil })
	}
	wantCode(t, register("t"), codes.ResourceExhausted, "serves tables on 64 streams")
	serveTables(t, d.Socket, "one", numbers("many", 1))
	for range 4 {
		watch, err := c.ReadTable(ctx, &weftv1.ReadTableRequest{Publisher: "one", Table: "many", Watch: true})
		if err == nil {
			_, err = watch.Recv()
		}
		must(t, err)
	}
	more, err := c.ReadTable(ctx, &weftv1.ReadTableRequest{Publisher: "one", Table: "many"})
	if err == nil {
		_, err = more.Recv()
	}
	wantCode(t, err, codes.ResourceExhausted, "4 open reads of tables of one")
	if all, err := client.ReadRows[row](ctx, d.Dial(t, "boss"), "one", "many", nil); err != nil || len(all) != 1 {
		t.Errorf("another reader has %v, %v", all, err)
	}
}
