package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const (
	// rate is new connections per second, of all streams.
	rate = 500
	// late is the time until a question of UDP is asked again.
	late = 950 * time.Millisecond
	// lost bounds an answer. A busy machine may delay the servers of this process.
	lost = 10 * time.Second
)

type stream struct {
	name string
	// the node whose rules choose the pod
	node  *lab.Node
	from  *lab.Namespace
	proto string
	to    netip.AddrPort
}

// traffic opens connections until it is stopped, and records failures.
type traffic struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	asked                 atomic.Int64
	mu                    sync.Mutex
	failed, dead, changes int
	// questions of UDP that were answered the second time
	repeated int
	examples []string
	// left has the times at which pods left the Service.
	left map[string]time.Time
	// away is the duration without a proxy on a node in a period; it may be nil.
	away func(n *lab.Node, from, to time.Time) time.Duration
	// answers of pods that left while the node had no proxy
	frozen int
}

// All streams share the rate.
func startTraffic(ctx context.Context, streams []stream, away func(n *lab.Node, from, to time.Time) time.Duration) *traffic {
	ctx, cancel := context.WithCancel(ctx)
	t := &traffic{cancel: cancel, left: make(map[string]time.Time), away: away}
	for _, s := range streams {
		t.running.Go(func() { t.run(ctx, s, time.Duration(len(streams))*time.Second/rate) })
	}
	return t
}

// run opens a connection in each interval, without waiting for earlier ones.
func (t *traffic) run(ctx context.Context, s stream, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.running.Go(func() { t.ask(s) })
		}
	}
}

// ask does not end with the traffic, so that every question is answered.
func (t *traffic) ask(s stream) {
	start := time.Now()
	answer, again, err := s.converse()
	t.asked.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if again {
		t.repeated++
		start = start.Add(late)
	}
	at, wasLeft := t.left[answer.Pod]
	known := start.Sub(at)
	if wasLeft && known > *staleFlag && t.away != nil {
		known -= t.away(s.node, at, start)
	}
	switch {
	case err != nil:
		t.failed++
		t.example("%s %s: %v", start.Format(time.StampMilli), s.name, err)
	case wasLeft && known > *staleFlag:
		t.dead++
		t.example("%s %s: answered by %s, %v after it left the Service, of which a proxy was there for %v",
			start.Format(time.StampMilli), s.name, answer.Pod, start.Sub(at).Round(time.Millisecond), known.Round(time.Millisecond))
	case wasLeft && start.Sub(at) > *staleFlag:
		t.frozen++
	}
}

// errResent means that the kernel retransmitted the first packet of a connection.
var errResent = errors.New("the first packet was lost")

// With every proxy a UDP answer under way is lost when its pod leaves the Service. So converse asks
// again, from the same port, and again is true.
func (s *stream) converse() (answer lab.Answer, again bool, err error) {
	wait, cancel := context.WithTimeout(context.Background(), lost)
	defer cancel()
	c, err := s.from.Open(wait, s.proto, s.to, 0)
	if err != nil {
		return answer, false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if n, err := c.Resent(); err != nil || n > 0 {
		return answer, false, cmp.Or(err, errResent)
	}
	if s.proto == "tcp" {
		answer, err = c.Ask(wait, "first")
		return answer, false, err
	}
	soon, cancel := context.WithTimeout(wait, late)
	defer cancel()
	answer, err = c.Ask(soon, "first")
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return answer, false, err
	}
	answer, err = c.Ask(wait, "second")
	return answer, true, err
}

func (t *traffic) example(format string, args ...any) {
	const most = 20
	if len(t.examples) < most {
		t.examples = append(t.examples, fmt.Sprintf(format, args...))
	}
}

// note records the current endpoints among all pods.
func (t *traffic) note(all, endpoints []*lab.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	in := make(map[string]bool)
	for _, p := range endpoints {
		in[p.Name()] = true
		delete(t.left, p.Name())
	}
	for _, p := range all {
		if _, known := t.left[p.Name()]; !known && !in[p.Name()] {
			t.left[p.Name()] = time.Now()
		}
	}
}

// enter precedes the pods' return to the endpoints: their answers are right again.
func (t *traffic) enter(endpoints []*lab.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range endpoints {
		delete(t.left, p.Name())
	}
}

// finish waits for the answers and fails the test for each wrong one.
func (t *traffic) finish(test *testing.T) string {
	test.Helper()
	t.cancel()
	t.running.Wait()
	if t.failed+t.dead > 0 {
		test.Errorf("the first of %d:\n%s", t.failed+t.dead, strings.Join(t.examples, "\n"))
	}
	return fmt.Sprintf("%d connections, %d changes of endpoints: %d failed, %d to a pod that had left %v before, %d questions of UDP were asked twice",
		t.asked.Load(), t.changes, t.failed, t.dead, *staleFlag, t.repeated)
}
