package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// tables for each stream
	maxServedTables = 32
	// open ServeTables streams for each publisher
	maxTableStreams = 64
	// open calls at a tableOwner, for each publisher but administrators
	maxTableReads = 4
	// bytes of a ReadTableRequest
	maxTableQuery = 4 << 10
	// for a publisher to accept a query, and to send the next part
	tablePatience = 30 * time.Second
)

var errNotServed = errors.New("table not served")

var errAnswer = errors.New("no answer")

type answerError string

func (e answerError) Error() string { return string(e) }
func (e answerError) Unwrap() error { return errAnswer }

type servedTables struct {
	mu     sync.Mutex
	owners map[string][]*tableOwner
}

// tableOwner is a publisher with the same tables on one or more streams. Each idle stream takes one
// of queries.
type tableOwner struct {
	publisher string
	tables    []string
	queries   chan *tableQuery
	// closed after the last stream
	gone chan struct{}

	// guarded by the mutex of servedTables
	streams int
	readers counts[string]
}

type tableQuery struct {
	// the reader's
	ctx      context.Context //nolint:containedctx // see above
	question *weftv1.ServeTablesResponse
	rows     chan [][]byte
	// closed after the last rows, when err is set
	ended chan struct{}
	err   error
}

// join counts a stream, until leave is called.
func (s *servedTables) join(publisher string, tables []string) (*tableOwner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := 0
	var owner *tableOwner
	for _, o := range s.owners[publisher] {
		streams += o.streams
		if slices.Equal(o.tables, tables) {
			owner = o
		}
	}
	if streams >= maxTableStreams {
		return nil, fmt.Errorf("%w: publisher %s serves tables on %d streams: end one before the next", errLimit, publisher, streams)
	}
	if owner == nil {
		owner = &tableOwner{publisher: publisher, tables: tables, queries: make(chan *tableQuery), gone: make(chan struct{}), readers: counts[string]{}}
		s.owners[publisher] = append(s.owners[publisher], owner)
	}
	owner.streams++
	return owner, nil
}

func (s *servedTables) leave(o *tableOwner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.streams--; o.streams > 0 {
		return
	}
	close(o.gone)
	rest := slices.DeleteFunc(s.owners[o.publisher], func(other *tableOwner) bool { return other == o })
	if s.owners[o.publisher] = rest; len(rest) == 0 {
		delete(s.owners, o.publisher)
	}
}

// begin counts a read at the owner registered last, until end is called.
//
// Possible errors: errNotServed, errLimit.
func (s *servedTables) begin(publisher, table string, c caller) (o *tableOwner, end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range slices.Backward(s.owners[publisher]) {
		if !slices.Contains(o.tables, table) {
			continue
		}
		if !c.Admin && o.readers[c.Publisher] >= maxTableReads {
			return nil, nil, fmt.Errorf("%w: publisher %s has %d open reads of tables of %s: end one before the next", errLimit, c.Publisher, maxTableReads, publisher)
		}
		o.readers.add(c.Publisher, 1)
		return o, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			o.readers.add(c.Publisher, -1)
		}, nil
	}
	return nil, nil, fmt.Errorf("%w: %s/%s: no process of publisher %s serves it", errNotServed, publisher, table, publisher)
}

func (s *service) ServeTables(stream grpc.BidiStreamingServer[weftv1.ServeTablesRequest, weftv1.ServeTablesResponse]) error {
	ctx := stream.Context()
	c := callerFrom(ctx)
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	// The publisher's next large request must not wait.
	c.request.admitted()
	tables := first.GetTables()
	if n := len(tables); n < 1 || n > maxServedTables {
		return fmt.Errorf("%w: %d tables, want 1 to %d", errLimit, n, maxServedTables)
	}
	for _, name := range tables {
		if err := admission.CheckIdentity("table", name); err != nil {
			return err
		}
	}
	owner, err := s.tables.join(c.Publisher, tables)
	if err != nil {
		return err
	}
	defer s.tables.leave(owner)
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	received, broken := make(chan *weftv1.ServeTablesRequest), make(chan error, 1)
	go func() {
		var err error
		defer func() { broken <- err }()
		defer rescue(s.log, "ServeTables", &err)
		for err == nil {
			var m *weftv1.ServeTablesRequest
			if m, err = stream.Recv(); err == nil {
				c.request.admitted()
				select {
				case received <- m:
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
		}
	}()
	select {
	case q := <-owner.queries:
		defer close(q.ended)
		q.err = answerError(fmt.Sprintf("publisher %s left before the end of the answer", owner.publisher))
		if err := stream.Send(q.question); err != nil {
			return err
		}
		return q.relay(ctx, received, broken)
	case <-received:
		return fmt.Errorf("%w: rows without a query", errMalformed)
	case err := <-broken:
		return ended(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *tableQuery) relay(ctx context.Context, received <-chan *weftv1.ServeTablesRequest, broken <-chan error) error {
	for {
		select {
		case m := <-received:
			if text := m.GetError(); text != "" {
				q.err = answerError(text)
				return nil
			}
			select {
			case q.rows <- m.GetRows():
			case <-q.ctx.Done():
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		case err := <-broken:
			if err = ended(err); err == nil {
				q.err = nil
			}
			return err
		case <-q.ctx.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (s *service) ReadTable(req *weftv1.ReadTableRequest, stream grpc.ServerStreamingServer[weftv1.ReadTableResponse]) error {
	c := callerFrom(stream.Context())
	publisher := cmp.Or(req.GetPublisher(), c.Publisher)
	if !c.reader().Sees(publisher) {
		return c.unreadable("table " + publisher + "/" + req.GetTable())
	}
	return s.reads.call(stream.Context(), func(r *read, c caller) error {
		owner, end, err := s.tables.begin(publisher, req.GetTable(), c)
		if err != nil {
			return err
		}
		defer end()
		return owner.ask(stream.Context(), req, func(rows [][]byte) error {
			size := 0
			for _, row := range rows {
				size += len(row)
			}
			if err := r.wait(size); err != nil {
				return err
			}
			return stream.Send(&weftv1.ReadTableResponse{Rows: rows})
		})
	})
}

// ask gives a query to an idle stream and calls send for each part of the answer.
//
// Possible errors: errNotServed, errAnswer, send's, ctx's.
func (o *tableOwner) ask(ctx context.Context, req *weftv1.ReadTableRequest, send func([][]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := &tableQuery{
		ctx: ctx, question: &weftv1.ServeTablesResponse{Table: req.GetTable(), Arguments: req.GetArguments(), Watch: req.GetWatch()},
		rows: make(chan [][]byte), ended: make(chan struct{}),
	}
	silence := time.NewTimer(tablePatience)
	defer silence.Stop()
	queries := o.queries
	for {
		select {
		case queries <- q:
			queries = nil
		case rows := <-q.rows:
			if err := send(rows); err != nil {
				return err
			}
			if silence.Stop(); !req.GetWatch() {
				silence.Reset(tablePatience)
			}
		case <-q.ended:
			return q.err
		case <-silence.C:
			return answerError(fmt.Sprintf("publisher %s does not answer within %v", o.publisher, tablePatience))
		case <-o.gone:
			if queries != nil {
				return fmt.Errorf("%w: publisher %s left before the query", errNotServed, o.publisher)
			}
			// The stream with the query ends it.
			<-q.ended
			return q.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
