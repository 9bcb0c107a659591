package lab

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// threads is a pool of threads in one namespace, because entering it for each call is slow.
type threads struct {
	work chan func()
	// started has an item for each thread. If it is full, callers wait.
	started chan struct{}
	closed  chan struct{}
}

const maxThreads = 16

func newThreads() *threads {
	return &threads{work: make(chan func()), started: make(chan struct{}, maxThreads), closed: make(chan struct{})}
}

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

func (p *threads) close() { close(p.closed) }
