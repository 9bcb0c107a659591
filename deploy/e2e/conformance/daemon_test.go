package conformance

import (
	"fmt"
	"sync"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// daemon restarts its program, as the kubelet or systemd does.
type daemon struct {
	namespace *lab.Namespace
	name, log string
	argv      []string

	// mu is held while the process is replaced.
	mu      sync.Mutex
	process *lab.Process
	starts  int
	killed  int
	stopped bool
	ended   chan struct{}
}

// patience bounds the end after SIGTERM.
const patience = 3 * time.Minute

// pause precedes a restart.
const pause = 100 * time.Millisecond

func (d *daemon) start() error {
	if err := d.launch(); err != nil {
		return err
	}
	d.ended = make(chan struct{})
	go d.follow()
	return nil
}

func (d *daemon) launch() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return nil
	}
	process, err := d.namespace.Start(d.name, d.log, nil, d.argv...)
	if err == nil {
		d.process = process
		d.starts++
	}
	return err
}

func (d *daemon) follow() {
	defer close(d.ended)
	for {
		d.mu.Lock()
		process := d.process
		d.mu.Unlock()
		<-process.Done()
		<-time.After(pause)
		d.mu.Lock()
		stopped := d.stopped
		d.mu.Unlock()
		if stopped || d.launch() != nil {
			return
		}
	}
}

// kill sends SIGKILL. The program restarts.
func (d *daemon) kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process.Err() == nil {
		d.killed++
	}
	return d.process.Kill()
}

func (d *daemon) stop() error {
	if d.ended == nil {
		return nil
	}
	d.mu.Lock()
	d.stopped = true
	process := d.process
	d.mu.Unlock()
	err := process.Stop(patience)
	<-d.ended
	return err
}

// unexpected returns an error if the program ended without kill.
func (d *daemon) unexpected() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.starts - 1 - d.killed; n > 0 {
		return fmt.Errorf("%s ended %d times by itself: see %s; its last lines:\n%s", d.name, n, d.log, d.process.Tail(20))
	}
	return nil
}
