package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// askTimeout bounds a question. On a busy machine a server waited two seconds for a core.
const askTimeout = 10 * time.Second

func (s space) dial(ctx context.Context, network string, local uint16, to netip.AddrPort) (net.Conn, error) {
	var conn net.Conn
	err := s.Do(func() (err error) {
		d := net.Dialer{Timeout: askTimeout}
		if network == "udp" && local != 0 {
			d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(zero(to.Addr()), local))
		}
		conn, err = d.DialContext(ctx, network, to.String())
		return err
	})
	return conn, err
}

func (s space) ask(ctx context.Context, network string, to netip.AddrPort) (answer, error) {
	return s.askWithin(ctx, askTimeout, network, to)
}

func (s space) askWithin(ctx context.Context, limit time.Duration, network string, to netip.AddrPort) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := s.dial(ctx, network, 0, to)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return answer{}, err
		}
	}
	if network == "tcp" {
		return readGreeting(bufio.NewReader(conn))
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		return answer{}, err
	}
	buf := make([]byte, 1500)
	n, err := conn.Read(buf)
	if err != nil {
		return answer{}, err
	}
	return parseAnswer(string(buf[:n]))
}

type tally struct {
	pods map[string]int
	seen map[netip.Addr]bool
}

func (s space) askMany(ctx context.Context, n int, network string, to netip.AddrPort) (tally, error) {
	t := tally{pods: make(map[string]int), seen: make(map[netip.Addr]bool)}
	for i := range n {
		a, err := s.ask(ctx, network, to)
		if err != nil {
			return t, fmt.Errorf("ask %s %s from %s, %d of %d: %w", network, to, s.Name, i+1, n, err)
		}
		t.pods[a.pod]++
		t.seen[a.seen.Addr()] = true
	}
	return t, nil
}

func (t *tally) add(o tally) {
	if t.pods == nil {
		*t = o
		return
	}
	for pod, n := range o.pods {
		t.pods[pod] += n
	}
	maps.Copy(t.seen, o.seen)
}

// String returns "answers of web-1 20, web-2 21; they see 10.1.1.20".
func (t tally) String() string {
	if len(t.pods) == 0 {
		return "no answers"
	}
	counts := cli.Map(slices.Sorted(maps.Keys(t.pods)), func(name string) string { return fmt.Sprintf("%s %d", name, t.pods[name]) })
	return fmt.Sprintf("answers of %s; they see %s", strings.Join(counts, ", "), t.sources())
}

func (t tally) names() string { return strings.Join(slices.Sorted(maps.Keys(t.pods)), ", ") }

func (t tally) sources() string {
	return strings.Join(cli.Map(slices.SortedFunc(maps.Keys(t.seen), netip.Addr.Compare), netip.Addr.String), ", ")
}

// blocked reports silence for 300 ms, a hundred times the usual answer time.
func (s space) blocked(ctx context.Context, network string, to netip.AddrPort) (bool, error) {
	_, err := s.askWithin(ctx, 300*time.Millisecond, network, to)
	var netErr net.Error
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &netErr) && netErr.Timeout():
		return true, nil
	default:
		return false, err
	}
}

type final struct{ err error }

func (f *final) Error() string { return f.err.Error() }
func (f *final) Unwrap() error { return f.err }

// await polls a condition until it returns nil. It returns a final error at once, and other errors
// after limit.
func await(ctx context.Context, limit time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition(ctx)
		if err == nil || errors.As(err, new(*final)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait %s: %w", limit, err)
		case <-tick.C:
		}
	}
}
