package differential

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// traffic asks continuously until it is stopped, and records losses.
type traffic struct {
	streams []*stream
	cancel  context.CancelFunc
	wait    sync.WaitGroup
}

// stream asks each question in its own conversation, or all in one.
type stream struct {
	name  string
	from  *actor
	proto string
	to    netip.AddrPort
	long  bool
	// state is the node's state right after a loss, for the log.
	state func() string

	asked atomic.Int64
	mu    sync.Mutex
	lost  []string
}

// late bounds an answer: a dropped first packet is retransmitted after a second.
const late = 950 * time.Millisecond

// pause is between two questions of a stream.
const pause = 4 * time.Millisecond

func flow(ctx context.Context, streams ...*stream) *traffic {
	ctx, cancel := context.WithCancel(ctx)
	t := &traffic{streams: streams, cancel: cancel}
	for _, s := range streams {
		t.wait.Go(func() { s.run(ctx) })
	}
	return t
}

func (t *traffic) stop() (asked int64, lost []string) {
	t.cancel()
	t.wait.Wait()
	for _, s := range t.streams {
		asked += s.asked.Load()
		lost = append(lost, s.lost...)
	}
	return asked, lost
}

// more waits until every stream has asked n more times.
func (t *traffic) more(ctx context.Context, n int64) error {
	var before []int64
	for _, s := range t.streams {
		before = append(before, s.asked.Load())
	}
	return within(ctx, 3*time.Minute, func() error {
		for i, s := range t.streams {
			if s.asked.Load() < before[i]+n {
				return fmt.Errorf("stream %s stands still: %s", s.name, strings.Join(s.losses(), "; "))
			}
		}
		return nil
	})
}

func (s *stream) losses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lost...)
}

func (s *stream) run(ctx context.Context) {
	var open *lab.Conversation
	defer func() {
		if open != nil {
			open.Close()
		}
	}()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		start := time.Now()
		err := s.ask(&open)
		if took := time.Since(start); err != nil || took > late {
			lost := fmt.Sprintf("%s %s at %s after %s: %v\n%s", start.Format(time.StampMilli), s.name, s.to, took.Round(time.Millisecond), err, s.state())
			s.mu.Lock()
			s.lost = append(s.lost, lost)
			s.mu.Unlock()
		}
		s.asked.Add(1)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ask does not end with the traffic, so that every question is answered.
func (s *stream) ask(open **lab.Conversation) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*late)
	defer cancel()
	c := *open
	if c == nil {
		var err error
		if c, err = s.from.Open(ctx, s.proto, s.to, 0); err != nil {
			return err
		}
		*open = c
	}
	_, err := c.Ask(ctx, fmt.Sprintf("q%d", questions.Add(1)))
	if !s.long {
		*open = nil
		err = errors.Join(err, c.Close())
	}
	return err
}
