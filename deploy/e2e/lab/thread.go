package lab

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// threads is a pool of operating system threads that stay in one namespace. Entering and
// leaving it for each call would cost more than the connections of the clients.
type threads struct {
	work chan func()
	// started has an item for each thread. If it is full, callers wait: calls are short.
	started chan struct{}
	closed  chan struct{}
}

// maxThreads is the maximum number of threads in one namespace.
const maxThreads = 16

func newThreads() *threads {
	return &threads{work: make(chan func()), started: make(chan struct{}, maxThreads), closed: make(chan struct{})}
}

// do calls f on a thread in the namespace of the file descriptor, and waits for it.
func (p *threads) do(fd int, f func() error) error {
	done := make(chan error, 1)
	job := func() { done <- f() }
	select {
	case p.work <- job: // a thread is idle
		return <-done
	default:
	}
	select {
	case p.work <- job:
		return <-done
	case p.started <- struct{}{}:
	}
	go p.run(fd, job, done)
	return <-done
}

// run is a thread. It ends together with its goroutine, because it must not be used elsewhere.
func (p *threads) run(fd int, job func(), failed chan<- error) {
	runtime.LockOSThread()
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		<-p.started
		failed <- fmt.Errorf("enter namespace: %w", err)
		return
	}
	for {
		job()
		select {
		case job = <-p.work:
		case <-p.closed:
			return
		}
	}
}

// close ends all threads: busy ones when their job is done.
func (p *threads) close() { close(p.closed) }
