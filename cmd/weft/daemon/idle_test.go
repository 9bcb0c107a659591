package daemon

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
)

// TestIdler plays what the heap does: a start, the quiet after it, and work that is too
// little or too much to collect for.
func TestIdler(t *testing.T) {
	const mib = 1 << 20
	now, freed, idle := heap{}, 0, false
	c := &idler{
		quietBytes: 4 * mib, minBytes: 16 * mib, read: func() heap { return now }, setIdle: func(a bool) { idle = a },
		free: func() { freed, now.held = freed+1, 40*mib },
	}
	var frees []int
	var idles []bool
	for _, period := range []struct{ allocated, held uint64 }{
		{200, 100},        // the start
		{1, 100}, {1, 41}, // quiet
		{60, 90}, {10, 90}, // a burst, which ebbs away
		{1, 90},           // quiet
		{3, 58}, {30, 58}, // less than half of what was held, allocated slowly and at once
		{1, 58}, {1, 61},
	} {
		now.allocated += period.allocated * mib
		now.held = period.held * mib
		c.judge()
		frees, idles = append(frees, freed), append(idles, idle)
	}
	if want := []int{0, 1, 1, 1, 1, 2, 2, 2, 2, 3}; !slices.Equal(frees, want) {
		t.Errorf("freed %v times, want %v", frees, want)
	}
	if want := []bool{false, true, true, false, false, true, true, false, true, true}; !slices.Equal(idles, want) {
		t.Errorf("idle %v, want %v", idles, want)
	}
}

// TestSetIdle goes to one processor and more garbage, and back.
func TestSetIdle(t *testing.T) {
	all, percent := runtime.GOMAXPROCS(0), debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	defer runtime.GOMAXPROCS(all)
	setIdle(true)
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("idle: there are %d processors", n)
	}
	if n := debug.SetGCPercent(100); n != idleGCPercent {
		t.Errorf("idle: garbage is collected at %d percent", n)
	}
	if setIdle(false); runtime.GOMAXPROCS(0) < 1 || runtime.NumCPU() > 1 && runtime.GOMAXPROCS(0) == 1 {
		t.Errorf("back on %d processors of %d", runtime.GOMAXPROCS(0), runtime.NumCPU())
	}
	if n := debug.SetGCPercent(100); n != gcPercent {
		t.Errorf("busy: garbage is collected at %d percent", n)
	}
}

// sink keeps what a test allocates.
var sink []byte

// TestReadHeap allocates and lets go of it.
func TestReadHeap(t *testing.T) {
	const size = 64 << 20
	sink = make([]byte, size)
	full := readHeap()
	if full.held < size || full.allocated < size {
		t.Errorf("with %d bytes in use: %+v", size, full)
	}
	runtime.KeepAlive(sink)
	sink = nil
	newIdler().free()
	if after := readHeap(); after.held > full.held-size/2 || after.allocated < full.allocated {
		t.Errorf("after %d bytes were let go of: %+v, before %+v", size, after, full)
	}
}
