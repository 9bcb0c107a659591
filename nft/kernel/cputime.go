package kernel

import (
	"time"

	"golang.org/x/sys/unix"
)

// callClock measures the processor time of system calls by a thread's clock, because the runtime
// may continue a goroutine on another thread after the call. Reading the clock takes about a
// microsecond, up to a tenth of a small commit. So probably short calls are measured by elapsed
// time.
type callClock struct {
	// thread is the clock of the calling thread, 0 if not read.
	thread int32
	ts     unix.Timespec
	began  time.Time
	before time.Duration
	// careful counts the next calls to measure by thread, because one was long.
	careful int
}

const (
	// shortCall limits the time counted for a probably short call.
	shortCall = 5 * time.Millisecond
	// shortBatch is the size in bytes of a probably short batch, about 100 elements.
	shortBatch = 4 << 10
	// carefulCalls are measured by thread after a long call.
	carefulCalls = 64
	// Clock selectors: CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED in include/linux/posix-timers.h.
	perThread, scheduled = 4, 2
)

// start begins the measurement of a call with n bytes on this thread.
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

// read returns the thread's processor time, or 0 if it has ended.
func (c *callClock) read() time.Duration {
	if unix.ClockGettime(c.thread, &c.ts) != nil {
		return 0
	}
	return time.Duration(c.ts.Nano())
}
