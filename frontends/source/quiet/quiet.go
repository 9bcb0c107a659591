package quiet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	quietFor = time.Minute
	// With more records in memory, all are forgotten.
	quietMost = 1000
)

// handler drops repeated messages and messages about canceled requests.
type handler struct {
	slog.Handler
	prefix string
	said   *said
}

type said struct {
	mu sync.Mutex
	at map[string]time.Time
}

// New returns a handler that passes new messages to next.
func New(next slog.Handler) slog.Handler {
	return handler{Handler: next, said: &said{at: make(map[string]time.Time)}}
}

func (q handler) Handle(ctx context.Context, r slog.Record) error {
	canceled := false
	var id strings.Builder
	id.WriteString(q.prefix + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && errors.Is(err, context.Canceled) {
			canceled = true
		}
		fmt.Fprintf(&id, " %s", a)
		return true
	})
	if canceled || q.said.recently(id.String(), r.Time) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{Handler: q.Handler.WithAttrs(attrs), prefix: q.prefix + fmt.Sprint(attrs), said: q.said}
}

func (q handler) WithGroup(name string) slog.Handler {
	return handler{Handler: q.Handler.WithGroup(name), prefix: q.prefix + name, said: q.said}
}

// recently records a message not logged within quietFor as logged now.
func (s *said) recently(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.at[id]; ok && now.Sub(last) < quietFor {
		return true
	}
	if len(s.at) >= quietMost {
		clear(s.at)
	}
	s.at[id] = now
	return false
}
