package lab

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// threads is a pool of operating system threads that stay in one namespace. Entering and
// leaving it for each call would cost more than the connections of the clients.
type threads struct {
	// busy has a place for each thread at work. Further callers wait: calls are
	// short.
	busy   chan struct{}
	mu     sync.Mutex
	idle   []*thread
	closed bool
}

// maxThreads bounds how many there are in one namespace.
const maxThreads = 16

func newThreads() *threads { return &threads{busy: make(chan struct{}, maxThreads)} }

// thread is one that is in a namespace until it ends.
type thread struct {
	work chan func()
}

// take returns a thread in the namespace of the file descriptor.
func (p *threads) take(fd int) (*thread, error) {
	p.busy <- struct{}{}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		t := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return t, nil
	}
	p.mu.Unlock()
	t, entered := &thread{work: make(chan func())}, make(chan error)
	go t.run(fd, entered)
	if err := <-entered; err != nil {
		<-p.busy
		return nil, err
	}
	return t, nil
}

// put gives a thread back.
func (p *threads) put(t *thread) {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-p.busy
	if p.closed {
		close(t.work)
		return
	}
	p.idle = append(p.idle, t)
}

// close ends all threads: those at work when they are done.
func (p *threads) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, t := range p.idle {
		close(t.work)
	}
	p.idle = nil
}

// run ends together with its thread, which stays in the namespace and must not be reused.
func (t *thread) run(fd int, entered chan<- error) {
	runtime.LockOSThread()
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		entered <- fmt.Errorf("enter namespace: %w", err)
		return
	}
	entered <- nil
	for f := range t.work {
		f()
	}
}

// do calls f on the thread and waits for it.
func (t *thread) do(f func() error) error {
	done := make(chan error)
	t.work <- func() { done <- f() }
	return <-done
}
