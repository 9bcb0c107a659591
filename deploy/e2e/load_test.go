package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// loadConfig says what a load asks, and how often.
type loadConfig struct {
	Network string // tcp or udp
	To      netip.AddrPort
	// Rate is the number of requests in a second. Each has a connection of its
	// own. On a machine that is too busy there are fewer.
	Rate int
	// Timeout is how long one may take before it counts as failed; 0 is 10 s. TCP
	// repeats a packet that was lost, which loadResult counts; a lost UDP packet is a failure.
	Timeout time.Duration
}

// load is a client that asks at a steady rate, whatever becomes of the
// answers, as many clients together do.
type load struct {
	from *lab.Namespace
	cfg  loadConfig
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	port   uint16
	result loadResult
}

// loadResult is what became of a load's requests.
type loadResult struct {
	Requests, Failures int
	// Repeated are requests of which TCP sent a packet more than once: one was
	// lost, or late by a second because the machine was busy.
	Repeated int
	// Pods counts the answers of each pod.
	Pods map[string]int
	// Errors are the first failures, with their time since the start.
	Errors []error
	// Latencies are those of the requests that succeeded, sorted.
	Latencies []time.Duration
}

// The source ports of a load. It takes them in turn, so that at 500 requests a second one is used
// again after 100 s: later than the kernel forgets a UDP flow or a closed TCP connection. A port that is used
// earlier would be the old flow, which rightly goes to the old endpoint.
const firstPort, lastPort = 10000, 59999

// maxPending bounds how many requests wait for their answers. Beyond that the load
// waits too, so that a machine that can't keep up is not brought to its knees.
const maxPending = 256

// keptErrors bounds loadResult.Errors.
const keptErrors = 5

// startLoad starts asking from the namespace, until stop is called.
func startLoad(n *lab.Namespace, cfg loadConfig) *load {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &load{from: n, cfg: cfg, stop: stop, done: make(chan struct{}), port: firstPort, result: loadResult{Pods: map[string]int{}}}
	go l.run(ctx)
	return l
}

// Stop ends the load, waits for the answers that are due, and returns what became of all.
func (l *load) Stop() loadResult {
	l.stop()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.result.Latencies)
	return l.result
}

// Answered returns how many pods have answered so far.
func (l *load) Answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.result.Pods)
}

// run sends each request at its time, or late if the machine was too busy.
func (l *load) run(ctx context.Context) {
	defer close(l.done)
	var pending sync.WaitGroup
	defer pending.Wait()
	slots := make(chan struct{}, maxPending)
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		for ; ctx.Err() == nil && !time.Now().Before(l.due(start, i)); i++ {
			slots <- struct{}{}
			pending.Go(func() {
				l.request(start)
				<-slots
			})
		}
		timer.Reset(time.Until(l.due(start, i)))
	}
}

func (l *load) due(start time.Time, i int) time.Time {
	return start.Add(time.Duration(i) * time.Second / time.Duration(l.cfg.Rate))
}

func (l *load) request(start time.Time) {
	begin := time.Now()
	a, repeated, err := l.ask()
	took := time.Since(begin)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.result.Requests++
	if repeated {
		l.result.Repeated++
	}
	if err == nil {
		l.result.Pods[a.Pod]++
		l.result.Latencies = append(l.result.Latencies, took)
		return
	}
	l.result.Failures++
	if len(l.result.Errors) < keptErrors {
		l.result.Errors = append(l.result.Errors, fmt.Errorf("%s after the start, for %s: %w", begin.Sub(start).Round(time.Millisecond), took.Round(time.Millisecond), err))
	}
}

// ask makes one request, and says whether TCP had to repeat a packet of it.
func (l *load) ask() (a lab.Answer, repeated bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
	defer cancel()
	for {
		c, err := l.from.Open(ctx, l.cfg.Network, l.cfg.To, l.nextPort())
		if errors.Is(err, syscall.EADDRINUSE) {
			continue // another client of this namespace has the port
		}
		if err != nil {
			return lab.Answer{}, false, err
		}
		defer c.Close()
		a, err := c.Ask(ctx, "load")
		if n, counted := repeatedBy(c); counted == nil {
			repeated = n > 0
		}
		return a, repeated, err
	}
}

func (l *load) nextPort() uint16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	port := l.port
	if l.port++; l.port > lastPort {
		l.port = firstPort
	}
	return port
}

// Quantile is the latency that the part q of the requests did not exceed; 0 without any.
func (r *loadResult) Quantile(q float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(len(r.Latencies)-1, int(q*float64(len(r.Latencies))))]
}

// String is one line of figures.
func (r *loadResult) String() string {
	return fmt.Sprintf("%d requests, %d failed, %d repeated by TCP, p50 %s, p99 %s, slowest %s", r.Requests, r.Failures, r.Repeated,
		r.Quantile(0.5).Round(10*time.Microsecond), r.Quantile(0.99).Round(10*time.Microsecond), r.Quantile(1).Round(10*time.Microsecond))
}

// Err is nil if there were requests, and all of them were answered.
func (r *loadResult) Err() error {
	switch {
	case r.Requests == 0:
		return errors.New("no request was made")
	case r.Failures == 0:
		return nil
	}
	var first []string
	for _, err := range r.Errors {
		first = append(first, err.Error())
	}
	return fmt.Errorf("%d of %d requests failed; the first of them:\n%s", r.Failures, r.Requests, strings.Join(first, "\n"))
}

// repeatedBy returns how many packets TCP has sent more than once; 0 on UDP.
func repeatedBy(c *lab.Conversation) (uint32, error) {
	conn, ok := c.Conn().(*net.TCPConn)
	if !ok {
		return 0, nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var info *unix.TCPInfo
	if ctl := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); ctl != nil {
		return 0, ctl
	}
	if err != nil {
		return 0, fmt.Errorf("read state of connection: %w", err)
	}
	return info.Total_retrans, nil
}
