package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
	"sync"

	"google.golang.org/grpc"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// readers answered at a time; others wait
	maxAnswers = 32
	// approximate bytes of a message with rows
	tablePart = 24 << 10
)

// Table is a table of a publisher for readers at the aggregator.
type Table struct {
	// valid as the name of a publisher
	Name string
	// Rows returns the rows for the arguments of a reader, each for encoding/json. Readers get the
	// error's text.
	Rows func(arguments map[string]string) (iter.Seq[any], error)
	// nil if readers cannot watch the table
	Changes *Changes
}

// Changes tells readers about changes. The zero value is usable.
type Changes struct {
	mu       sync.Mutex
	watchers map[chan struct{}]struct{}
}

// Notify tells all watching readers about a change. It never blocks.
func (c *Changes) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (c *Changes) watch(ctx context.Context, changed func() error) error {
	w := make(chan struct{}, 1)
	c.mu.Lock()
	if c.watchers == nil {
		c.watchers = make(map[chan struct{}]struct{})
	}
	c.watchers[w] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, w)
	}()
	for {
		if err := changed(); err != nil {
			return err
		}
		select {
		case <-w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ServeTables serves tables under Config.Publisher until ctx ends, and reconnects automatically. It
// returns an error only for an invalid Config.
func ServeTables(ctx context.Context, cfg Config, tables ...Table) error {
	cfg.setDefaults()
	c, err := connect(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	s := &tableServer{client: c, tables: make(map[string]Table), answers: make(chan struct{}, maxAnswers)}
	for _, t := range tables {
		s.tables[t.Name] = t
		s.names = append(s.names, t.Name)
	}
	defer s.answering.Wait()
	c.keep(c.outgoing(ctx), "registration of tables", s.accept, func(error) {})
	return nil
}

type tableServer struct {
	client *Client
	tables map[string]Table
	names  []string
	// has room for another answer
	answers   chan struct{}
	answering sync.WaitGroup
}

type tableStream = grpc.BidiStreamingClient[weftv1.ServeTablesRequest, weftv1.ServeTablesResponse]

// accept opens one stream after the other, and has each answer its query. It calls opened for
// registered tables.
func (s *tableServer) accept(ctx context.Context, opened func()) error {
	// An answer ends after the next stream has registered the tables, so that they stay registered.
	release := func() {}
	defer func() { release() }()
	for {
		select {
		case s.answers <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		ctx, cancel := context.WithCancel(ctx)
		stream, query, err := s.receive(ctx, func() {
			release()
			opened()
		})
		if err != nil {
			cancel()
			<-s.answers
			return streamError(s.client, err)
		}
		next := make(chan struct{})
		release = sync.OnceFunc(func() { close(next) })
		s.answering.Go(func() {
			defer func() { <-s.answers }()
			defer cancel()
			s.answer(ctx, cancel, stream, query, next)
		})
	}
}

func (s *tableServer) receive(ctx context.Context, opened func()) (tableStream, *weftv1.ServeTablesResponse, error) {
	stream, err := s.client.tables.ServeTables(ctx, grpc.WaitForReady(true))
	if err != nil {
		return nil, nil, err
	}
	if err := stream.Send(&weftv1.ServeTablesRequest{Tables: s.names}); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	// Without a header there is a status to receive.
	if header, err := stream.Header(); err == nil && header != nil {
		opened()
	}
	query, err := stream.Recv()
	return stream, query, err
}

// answer ends early if the reader leaves.
func (s *tableServer) answer(ctx context.Context, cancel func(), stream tableStream, query *weftv1.ServeTablesResponse, next <-chan struct{}) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer cancel()
		_, _ = stream.Recv()
	}()
	err := s.rows(ctx, query, func(rows [][]byte) error { return stream.Send(&weftv1.ServeTablesRequest{Rows: rows}) })
	if err != nil && ctx.Err() == nil {
		_ = stream.Send(&weftv1.ServeTablesRequest{Error: err.Error()})
	}
	select {
	case <-next:
	case <-ctx.Done():
	}
	_ = stream.CloseSend()
	<-left
}

func (s *tableServer) rows(ctx context.Context, query *weftv1.ServeTablesResponse, send func([][]byte) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.client.cfg.Logger.Error("reading a table panicked", "table", query.GetTable(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("internal error: reading the table panicked, see the log of its process")
		}
	}()
	t, ok := s.tables[query.GetTable()]
	switch {
	case !ok:
		return fmt.Errorf("there is no table %q", query.GetTable())
	case query.GetWatch() && t.Changes == nil:
		return fmt.Errorf("table %s cannot be watched: read it again instead", t.Name)
	case query.GetWatch():
		return t.Changes.watch(ctx, func() error { return send(nil) })
	}
	all, err := t.Rows(query.GetArguments())
	if err != nil {
		return err
	}
	var part [][]byte
	size := 0
	for row := range all {
		text, err := json.Marshal(row)
		if err == nil {
			err = checkSize(len(text))
		}
		if err != nil {
			return fmt.Errorf("row of table %s: %w", t.Name, err)
		}
		if part, size = append(part, text), size+len(text); size >= tablePart {
			if err := send(part); err != nil {
				return err
			}
			part, size = nil, 0
		}
	}
	return send(part)
}

// ReadTable calls row with each row of a publisher's table, a JSON object. The table defines the
// arguments.
//
// Possible errors: the errors of ListTables, ErrNotServed, row's, the text of a publisher that
// cannot answer.
func (c *Client) ReadTable(ctx context.Context, publisher, table string, arguments map[string]string, row func([]byte) error) error {
	req := &weftv1.ReadTableRequest{Publisher: publisher, Table: table, Arguments: arguments}
	return each(ctx, c, "read "+table, "", c.tables.ReadTable, req, func(part *weftv1.ReadTableResponse) error {
		for _, r := range part.GetRows() {
			if err := row(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// WatchTable calls changed at once, and after changes of a publisher's table.
//
// Possible errors: the errors of ReadTable, except row's.
func (c *Client) WatchTable(ctx context.Context, publisher, table string, changed func()) error {
	req := &weftv1.ReadTableRequest{Publisher: publisher, Table: table, Watch: true}
	return each(ctx, c, "read "+table, "", c.tables.ReadTable, req, func(*weftv1.ReadTableResponse) error {
		changed()
		return nil
	})
}

// ReadRows returns the rows of a publisher's table, decoded by encoding/json.
//
// Possible errors: the errors of ReadTable.
func ReadRows[T any](ctx context.Context, c *Client, publisher, table string, arguments map[string]string) (rows []T, err error) {
	err = c.ReadTable(ctx, publisher, table, arguments, func(text []byte) error {
		var row T
		err := json.Unmarshal(text, &row)
		rows = append(rows, row)
		return err
	})
	return rows, err
}
