package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

const interval = 5 * time.Millisecond

type traffic struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	count int
	err   error
}

// start closes conn when the traffic stops, unless conn is nil.
func (t *traffic) start(ctx context.Context, conn net.Conn, probes ...func(context.Context) error) {
	ctx, t.cancel = context.WithCancel(ctx)
	if conn != nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	for _, probe := range probes {
		t.wg.Go(func() { t.repeat(ctx, probe) })
	}
}

func (t *traffic) repeat(ctx context.Context, probe func(context.Context) error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := probe(ctx)
		if ctx.Err() != nil {
			return
		}
		t.mu.Lock()
		if err == nil {
			t.count++
		}
		t.err = cmp.Or(t.err, err)
		t.mu.Unlock()
		if err != nil {
			return
		}
		<-tick.C
	}
}

func (t *traffic) check() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count, t.err
}

// An interrupted probe does not count.
func (t *traffic) stop() {
	t.cancel()
	t.wg.Wait()
}

// in bytes
const blockSize = 512

type tcpStream struct {
	traffic
	pod string
}

func startStream(ctx context.Context, from space, to netip.AddrPort) (*tcpStream, error) {
	conn, err := from.dial(ctx, "tcp", 0, to)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	in := bufio.NewReader(conn)
	if err := conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	hello, err := readGreeting(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open stream: %w", err), conn.Close())
	}
	s := &tcpStream{pod: hello.pod}
	block, back := make([]byte, blockSize), make([]byte, blockSize)
	n := uint64(0)
	s.start(ctx, conn, func(context.Context) error {
		for i := 0; i < blockSize; i += 8 {
			binary.BigEndian.PutUint64(block[i:], n)
			n++
		}
		err := conn.SetDeadline(time.Now().Add(askTimeout))
		if err == nil {
			_, err = conn.Write(block)
		}
		if err == nil {
			_, err = io.ReadFull(in, back)
		}
		if err == nil && !bytes.Equal(block, back) {
			err = errors.New("other bytes came back than went out")
		}
		if err != nil {
			return fmt.Errorf("tcp connection to %s broke after %d bytes: %w", s.pod, 8*n, err)
		}
		return nil
	})
	return s, nil
}

func (s *tcpStream) check() (int, error) {
	blocks, err := s.traffic.check()
	return blocks * blockSize, err
}

type udpFlow struct {
	traffic
	// the last answering pod, and the time of its first answer
	last  string
	since time.Time
	// packets without an answer yet
	lost int
}

func startFlow(ctx context.Context, from space, port uint16, to netip.AddrPort) (*udpFlow, error) {
	conn, err := from.dial(ctx, "udp", port, to)
	if err != nil {
		return nil, fmt.Errorf("open udp flow: %w", err)
	}
	f := &udpFlow{}
	f.start(ctx, conn, func(context.Context) error { return f.send(conn) })
	return f, nil
}

func (f *udpFlow) send(conn net.Conn) error {
	// Ignore an ICMP error for an earlier packet.
	_, _ = conn.Write([]byte("?"))
	f.mu.Lock()
	f.lost++
	f.mu.Unlock()
	if err := conn.SetReadDeadline(time.Now().Add(interval)); err != nil {
		return err
	}
	for buf := make([]byte, 1500); ; {
		n, err := conn.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err == nil:
			if err := f.note(string(buf[:n])); err != nil {
				return err
			}
		}
	}
}

func (f *udpFlow) note(text string) error {
	a, err := parseAnswer(text)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.pod != f.last {
		f.last, f.since = a.pod, time.Now()
	}
	f.lost--
	return nil
}

func (f *udpFlow) state() (pod string, since time.Time, lost int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.since, f.lost, f.err
}

type target struct {
	from    space
	network string
	to      netip.AddrPort
}

func startNewFlows(ctx context.Context, targets ...target) *traffic {
	probes := make([]func(context.Context) error, len(targets))
	for i, t := range targets {
		probes[i] = func(ctx context.Context) error {
			if _, err := t.from.ask(ctx, t.network, t.to); err != nil {
				return fmt.Errorf("new %s flow from %s to %s: %w", t.network, t.from.Name, t.to, err)
			}
			return nil
		}
	}
	t := &traffic{}
	t.start(ctx, nil, probes...)
	return t
}
