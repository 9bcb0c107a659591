package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

const (
	maxInFlight = 256
	// maxBytes bounds the unanswered lines; one line may use it all.
	maxBytes = MaxLine
)

// Config configures Run.
type Config struct {
	// The client's publisher owns the fragments.
	Client *client.Client
	// In has updates, Out gets answers, in lines.
	In  io.Reader
	Out io.Writer
	// the lifetime of snapshots
	Lifetime weftv1.Lifetime
	// the time to live of snapshots; 0 means no expiration
	TTL time.Duration
	// Inserts the included files of a .nft text; may be nil.
	Include func(text string) (string, error)
	// Logs refused resyncs; may be nil.
	Logger *slog.Logger
}

// Result counts the answers.
type Result struct {
	Committed, Refused int
}

var errInterrupted = errors.New("interrupted")

// Run publishes until the input ends and every update is answered, or ctx ends. It then withdraws
// fragments with the lifetime of the session. One read of the input may continue after ctx has
// ended.
//
// It is an error if ctx ends while updates wait. Rejected updates are not errors.
func Run(ctx context.Context, cfg Config) (Result, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	session := cfg.Client.Session(client.SessionConfig{OnSync: func(name string, _ uint64, err error) {
		if err != nil {
			cfg.Logger.Error("cannot send the fragment again after a reconnect", "fragment", name, "error", err)
		}
	}})
	defer func() { _ = session.Close() }()
	b := &bridge{cfg: cfg, session: session, answers: make(chan submission, maxInFlight), room: semaphore.NewWeighted(maxBytes)}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	go b.read(reading)
	err := b.answer(ctx)
	return b.result, err
}

type bridge struct {
	cfg     Config
	session *client.Session
	answers chan submission
	room    *semaphore.Weighted
	// owned by the answering goroutine
	result Result
}

type submission struct {
	id      *uint64
	line    int
	pending *client.Pending
	err     error
	// the input has ended, with any error in err
	last   bool
	weight int64
}

func (b *bridge) read(ctx context.Context) {
	in := newLines(b.cfg.In, MaxLine)
	for {
		line, err := in.next()
		s := submission{line: in.n, weight: int64(len(line))}
		if err != nil && !errors.As(err, new(*lineTooLong)) {
			s.last = true
			if !errors.Is(err, io.EOF) {
				s.err = fmt.Errorf("read line %d: %w", in.n+1, err)
			}
		}
		if b.room.Acquire(ctx, s.weight) != nil {
			return
		}
		switch {
		case s.last:
		case err != nil:
			s.err = err
		default:
			b.send(&s, line)
		}
		select {
		case b.answers <- s:
		case <-ctx.Done():
			return
		}
		if s.last {
			return
		}
	}
}

func (b *bridge) send(s *submission, line []byte) {
	var req *weftv1.PublishRequest
	if req, s.id, s.err = decode(line); s.err != nil {
		return
	}
	if f := req.GetSnapshot(); f != nil && f.GetLifetime() == weftv1.Lifetime_LIFETIME_UNSPECIFIED {
		f.Lifetime = b.cfg.Lifetime
	}
	if f := req.GetSnapshot(); f.GetNft() != "" && b.cfg.Include != nil {
		if f.Nft, s.err = b.cfg.Include(f.GetNft()); s.err != nil {
			return
		}
	}
	switch u := req.GetUpdate().(type) {
	case *weftv1.PublishRequest_Snapshot:
		if u.Snapshot.GetExpiration() == nil && b.cfg.TTL > 0 {
			u.Snapshot.Expiration = &weftv1.Fragment_Ttl{Ttl: durationpb.New(b.cfg.TTL)}
		}
		s.pending = b.session.StartPutContent(u.Snapshot.GetName(), &kept{snapshot: u.Snapshot.WithExpireTime(time.Now())})
	case *weftv1.PublishRequest_Patch:
		s.pending = b.session.StartPatch(u.Patch)
	case *weftv1.PublishRequest_Withdraw:
		s.pending = b.session.StartWithdraw(u.Withdraw)
	}
}

func (b *bridge) answer(ctx context.Context) error {
	for {
		var s submission
		select {
		case s = <-b.answers:
		case <-ctx.Done():
			return b.interrupted(0)
		}
		if s.last {
			return s.err
		}
		a := answer{ID: s.id}
		err := s.err
		if s.pending != nil {
			if a.Revision, err = s.pending.Wait(ctx); err != nil && ctx.Err() != nil {
				return b.interrupted(1)
			}
		}
		b.room.Release(s.weight)
		if err != nil {
			a.refuse(s.line, err)
			b.result.Refused++
		} else {
			b.result.Committed++
		}
		if err := a.write(b.cfg.Out); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
}

// interrupted returns an error with the number of unanswered updates, or nil.
func (b *bridge) interrupted(n int) error {
	if n += len(b.answers); n > 0 {
		return fmt.Errorf("%w: at least %d updates were not acknowledged", errInterrupted, n)
	}
	return nil
}
