package kernel

import (
	"time"

	"golang.org/x/sys/unix"
)

// callClock measures the processor time of system calls. Reading a thread's clock takes up to a
// tenth of a small commit, so probably short calls are measured by elapsed time. The goroutine may
// continue on another thread.
type callClock struct {
	// thread's clock; 0 measures elapsed time
	thread int32
	ts     unix.Timespec
	began  time.Time
	before time.Duration
	// careful is the number of next calls measured by the thread's clock, after a long call.
	careful int
}

const (
	shortCall = 5 * time.Millisecond
	// shortBatch is the size in bytes of about 100 elements.
	shortBatch   = 4 << 10
	carefulCalls = 64
	// CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of include/linux/posix-timers.h
	perThread, scheduled = 4, 2
)

// start must run on the thread of the call, which has n bytes.
func (c *callClock) start(n int) {
	c.thread = 0
	if n > shortBatch || c.careful > 0 {
		c.careful = max(c.careful-1, 0)
		c.thread = int32(^unix.Gettid())<<3 | perThread | scheduled //nolint:gosec // thread IDs are small
		c.before = c.read()
	}
	c.began = time.Now()
}

func (c *callClock) stop() time.Duration {
	passed := time.Since(c.began)
	if passed > shortCall {
		c.careful = carefulCalls
	}
	if c.thread == 0 {
		return min(passed, shortCall)
	}
	return min(passed, max(c.read()-c.before, 0))
}

// read returns 0 if the thread has ended.
func (c *callClock) read() time.Duration {
	if unix.ClockGettime(c.thread, &c.ts) != nil {
		return 0
	}
	return time.Duration(c.ts.Nano())
}
