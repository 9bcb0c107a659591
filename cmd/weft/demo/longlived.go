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

// tcpStream is a TCP connection that is used all the time: every few
// milliseconds a block goes out and must come back as it was.
type tcpStream struct {
	// pod is the server at the other end.
	pod  string
	conn net.Conn
	in   *bufio.Reader
	done chan struct{}

	mu    sync.Mutex
	bytes int
	err   error
}

// startStream opens a connection from a namespace.
func startStream(ctx context.Context, from space, to netip.AddrPort) (*tcpStream, error) {
	conn, err := from.dial(ctx, "tcp", 0, to)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	s := &tcpStream{conn: conn, in: bufio.NewReader(conn), done: make(chan struct{})}
	if err := conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	hello, err := readGreeting(s.in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open stream: %w", err), conn.Close())
	}
	s.pod = hello.pod
	go s.run()
	return s, nil
}

// run exchanges blocks until one fails or the connection is closed.
func (s *tcpStream) run() {
	defer close(s.done)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	block, back := make([]byte, 512), make([]byte, 512)
	for n := uint64(0); ; n++ {
		for i := 0; i < len(block); i += 8 {
			binary.BigEndian.PutUint64(block[i:], n<<6+uint64(i/8))
		}
		err := s.exchange(block, back)
		s.mu.Lock()
		s.bytes, s.err = s.bytes+len(block), err
		s.mu.Unlock()
		if err != nil {
			return
		}
		<-tick.C
	}
}

func (s *tcpStream) exchange(block, back []byte) error {
	if err := s.conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return err
	}
	if _, err := s.conn.Write(block); err != nil {
		return err
	}
	if _, err := io.ReadFull(s.in, back); err != nil {
		return err
	}
	if !bytes.Equal(block, back) {
		return errors.New("other bytes came back than went out")
	}
	return nil
}

// check returns how many bytes came back so far, or why the connection ended.
func (s *tcpStream) check() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.bytes, fmt.Errorf("tcp connection to %s broke after %d bytes: %w", s.pod, s.bytes, s.err)
	}
	return s.bytes, nil
}

func (s *tcpStream) close() {
	_ = s.conn.Close()
	<-s.done
}

// udpFlow is a client that sends from one fixed source port all the time, as a
// DNS resolver or a QUIC client does, and notes who answers.
type udpFlow struct {
	conn net.Conn
	done chan struct{}

	mu sync.Mutex
	// last is who answered last, since the time when that pod first did.
	last  string
	since time.Time
	// lost is how many packets had no answer.
	lost int
	err  error
}

// startFlow begins to send from a source port.
func startFlow(ctx context.Context, from space, port uint16, to netip.AddrPort) (*udpFlow, error) {
	conn, err := from.dial(ctx, "udp", port, to)
	if err != nil {
		return nil, fmt.Errorf("open udp flow: %w", err)
	}
	f := &udpFlow{conn: conn, done: make(chan struct{})}
	go f.run()
	return f, nil
}

// run sends a packet every 5 ms and reads answers between, until the connection is closed.
func (f *udpFlow) run() {
	defer close(f.done)
	buf := make([]byte, 1500)
	for {
		// An ICMP error for an earlier packet is reported here; the next may well arrive.
		_, _ = f.conn.Write([]byte("?"))
		err := f.conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		f.mu.Lock()
		f.lost++
		f.err = cmp.Or(f.err, err)
		f.mu.Unlock()
		for !errors.Is(err, os.ErrDeadlineExceeded) {
			var n int
			if n, err = f.conn.Read(buf); errors.Is(err, net.ErrClosed) {
				return
			} else if err == nil {
				f.note(string(buf[:n]))
			}
		}
	}
}

// note records an answer.
func (f *udpFlow) note(text string) {
	a, err := parseAnswer(text)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.err = err
		return
	}
	if a.pod != f.last {
		f.last, f.since = a.pod, time.Now()
	}
	f.lost--
}

// state returns who answers, since when, and how many packets had no answer.
func (f *udpFlow) state() (pod string, since time.Time, lost int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.since, f.lost, f.err
}

func (f *udpFlow) close() {
	_ = f.conn.Close()
	<-f.done
}

// hammer makes new flows all the time, to find out whether anything that
// happens meanwhile disturbs them.
type hammer struct {
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu  sync.Mutex
	ok  int
	err error
}

// target is what a hammer asks, and from where.
type target struct {
	from    space
	network string
	to      netip.AddrPort
}

// startHammer asks each target in turn until it is stopped.
func startHammer(ctx context.Context, targets ...target) *hammer {
	h := &hammer{}
	ctx, h.stop = context.WithCancel(ctx)
	for _, t := range targets {
		h.wg.Go(func() { h.run(ctx, t) })
	}
	return h
}

func (h *hammer) run(ctx context.Context, t target) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := t.from.ask(ctx, t.network, t.to)
		if ctx.Err() != nil {
			return
		}
		h.mu.Lock()
		if err == nil {
			h.ok++
		} else if h.err == nil {
			h.err = fmt.Errorf("new %s flow from %s to %s: %w", t.network, t.from.Name, t.to, err)
		}
		h.mu.Unlock()
		<-tick.C
	}
}

// finish stops the hammer and returns how many flows were made, or the first
// that failed.
func (h *hammer) finish() (int, error) {
	h.stop()
	h.wg.Wait()
	return h.ok, h.err
}
