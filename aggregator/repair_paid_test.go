package aggregator

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/queue"
	"github.com/weft-proxy/weft/nft/kernel"
)

// TestCausedRepairIsPaid has an update of a publisher cause a comparison with the kernel that takes
// long: the publisher pauses, although its update was small and its commits before were short.
func TestCausedRepairIsPaid(t *testing.T) {
	of := func(publisher string) *submission {
		return &submission{update: &desired.Update{Fragment: desired.Key{Publisher: publisher}}}
	}
	for caused, pauses := range map[bool]bool{true: true, false: false} {
		now := time.Unix(1000, 0)
		a, err := New(Config{Kernel: dumps{called: burn}})
		if err != nil {
			t.Fatal(err)
		}
		a.writer.queue = queue.New[*submission](func() time.Time { return now }, func(string) bool { return false })
		a.writer.drift = "a refusal"
		if err := a.writer.repairFor([]*submission{of("a")}, caused); err != nil {
			t.Fatal(err)
		}
		a.writer.queue.Put(of("other"))
		a.writer.queue.Put(of("a"))
		taken := a.writer.queue.Take(func(*submission) int { return 1 })
		if got := len(taken) == 1 && taken[0].Publisher() == "other"; got != pauses {
			t.Errorf("the update caused it: %v; its publisher pauses: %v (%d taken)", caused, got, len(taken))
		}
	}
}

// burn uses 100 ms of the thread's processor time.
func burn() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var ts unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
		return time.Duration(ts.Nano())
	}
	for began := used(); used()-began < 100*time.Millisecond; {
	}
}

// idle is a kernel that owns nothing and accepts every plan.
type idle struct{ Kernel }

func (idle) Owner() bool             { return false }
func (idle) Check([]kernel.Op) error { return nil }

// dumps is an empty kernel that is called when it is read.
type dumps struct {
	idle
	called func()
}

func (d dumps) Commit([]kernel.Op) (kernel.Stats, error) { return kernel.Stats{}, nil }
func (d dumps) Adopt() ([]kernel.Table, error)           { return nil, nil }
func (d dumps) Dump() ([]kernel.Table, error) {
	d.called()
	return nil, nil
}
