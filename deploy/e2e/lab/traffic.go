package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Stream asks questions one after the other, each in its own conversation, or all in one if it is long.
type Stream struct {
	Name    string
	From    *Namespace
	Network string
	To      netip.AddrPort
	Long    bool
	// Every is between two questions. An answer after Late is a loss.
	Every, Late time.Duration

	asked atomic.Int64
	mu    sync.Mutex
	lost  []string
}

// Traffic is running streams.
type Traffic struct {
	streams []*Stream
	cancel  context.CancelFunc
	wait    sync.WaitGroup
}

// StartTraffic runs until Stop, or until ctx ends.
func StartTraffic(ctx context.Context, streams ...*Stream) *Traffic {
	ctx, cancel := context.WithCancel(ctx)
	t := &Traffic{streams: streams, cancel: cancel}
	for _, s := range streams {
		t.wait.Go(func() { s.run(ctx) })
	}
	return t
}

// Stop returns the number of questions, and a text for each loss. A stream without questions is one too.
func (t *Traffic) Stop() (asked int64, lost []string) {
	t.cancel()
	t.wait.Wait()
	for _, s := range t.streams {
		if s.asked.Load() == 0 {
			lost = append(lost, s.Name+": no question was asked")
		}
		asked += s.asked.Load()
		lost = append(lost, s.lost...)
	}
	return asked, lost
}

// More waits until every stream has asked n more times.
func (t *Traffic) More(ctx context.Context, n int64) error {
	var before []int64
	for _, s := range t.streams {
		before = append(before, s.asked.Load())
	}
	return Within(ctx, 3*time.Minute, func() error {
		for i, s := range t.streams {
			if s.asked.Load() < before[i]+n {
				s.mu.Lock()
				defer s.mu.Unlock()
				return fmt.Errorf("stream %s stands still: %s", s.Name, strings.Join(s.lost, "; "))
			}
		}
		return nil
	})
}

func (s *Stream) run(ctx context.Context) {
	var open *Conversation
	defer func() {
		if open != nil {
			open.Close()
		}
	}()
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for {
		start := time.Now()
		err := s.ask(&open)
		if took := time.Since(start); err != nil || took > s.Late {
			s.mu.Lock()
			s.lost = append(s.lost, fmt.Sprintf("%s %s at %s after %s: %v", start.Format(time.StampMilli), s.Name, s.To, took.Round(time.Millisecond), err))
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
func (s *Stream) ask(open **Conversation) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*s.Late)
	defer cancel()
	c := *open
	if c == nil {
		var err error
		if c, err = s.From.Open(ctx, s.Network, s.To, 0); err != nil {
			return err
		}
		*open = c
	}
	_, err := c.Ask(ctx, fmt.Sprintf("q%d", s.asked.Load()))
	if !s.Long {
		*open = nil
		err = errors.Join(err, c.Close())
	}
	return err
}
