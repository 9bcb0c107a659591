package kernel

import (
	"time"

	"golang.org/x/sys/unix"
)

// callClock measures the processor time of system calls. It reads the clock of a thread, which any
// thread can read, because the runtime may continue a goroutine on another thread after the call.
// Reading takes about a microsecond, up to a tenth of a small commit. So calls that are probably
// short are measured by elapsed time.
type callClock struct {
	// thread is the clock of the calling thread, 0 if not read.
	thread int32
	ts     unix.Timespec
	began  time.Time
	before time.Duration
	// careful counts the next calls to measure by the thread's clock, because one was long.
	careful int
}

const (
	// shortCall limits the time counted for a call that is probably short.
	shortCall = 5 * time.Millisecond
	// shortBatch is the size in bytes of a batch that is probably short, about 100 elements.
	shortBatch = 4 << 10
	// carefulCalls is the number of calls measured by the thread's clock after a long one.
	carefulCalls = 64
	// perThread and scheduled select a clock: CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED in
	// the kernel's include/linux/posix-timers.h.
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

// stop returns the processor time since start.
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

// read returns the processor time of the thread, or 0 if the thread has ended.
func (c *callClock) read() time.Duration {
	if unix.ClockGettime(c.thread, &c.ts) != nil {
		return 0
	}
	return time.Duration(c.ts.Nano())
}
