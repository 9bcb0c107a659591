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

type loadConfig struct {
	Network string // tcp or udp
	To      netip.AddrPort
	// Rate is in requests per second, each with its own connection. A busy machine makes fewer.
	Rate int
	// Timeout of a request; 0 is 10 s. TCP retransmits a lost packet, which loadResult counts; a lost
	// UDP packet is a failure.
	Timeout time.Duration
}

// load asks at a steady rate, independently of the answers, as many clients together do.
type load struct {
	from *lab.Namespace
	cfg  loadConfig
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	port   uint16
	result loadResult
}

type loadResult struct {
	Requests, Failures int
	// requests with a TCP retransmission
	Repeated int
	// answers by pod
	Pods map[string]int
	// the first failures, with their time since the start
	Errors []error
	// of successful requests, sorted
	Latencies []time.Duration
}

// At 500 requests a second a port is reused after 100 s, later than the kernel forgets a UDP flow or a
// closed TCP connection. Earlier reuse would continue the old flow.
const firstPort, lastPort = 10000, 59999

// maxPending bounds the requests without an answer. Beyond that the load waits.
const maxPending = 256

const keptErrors = 5

func startLoad(n *lab.Namespace, cfg loadConfig) *load {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &load{from: n, cfg: cfg, stop: stop, done: make(chan struct{}), port: firstPort, result: loadResult{Pods: map[string]int{}}}
	go l.run(ctx)
	return l
}

// Stop ends the load, waits for pending answers, and returns the results.
func (l *load) Stop() loadResult {
	l.stop()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.result.Latencies)
	return l.result
}

// Answered returns the number of pods that have answered so far.
func (l *load) Answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.result.Pods)
}

// A busy machine sends requests late.
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

// repeated reports a TCP retransmission.
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

// 0 without requests
func (r *loadResult) Quantile(q float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(len(r.Latencies)-1, int(q*float64(len(r.Latencies))))]
}

func (r *loadResult) String() string {
	return fmt.Sprintf("%d requests, %d failed, %d repeated by TCP, p50 %s, p99 %s, slowest %s", r.Requests, r.Failures, r.Repeated,
		r.Quantile(0.5).Round(10*time.Microsecond), r.Quantile(0.99).Round(10*time.Microsecond), r.Quantile(1).Round(10*time.Microsecond))
}

// Err is nil if there were requests and all were answered.
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

// repeatedBy returns the number of TCP retransmissions; 0 on UDP.
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
