package daemon

import (
	"runtime"
	"slices"
	"testing"
)

// TestIdler plays what the heap does: a start, the quiet after it, and work that is too
// little or too much to collect for.
func TestIdler(t *testing.T) {
	const mib = 1 << 20
	now, freed, one := heap{held: 100 * mib}, 0, false
	c := &idler{quietBytes: 4 * mib, minBytes: 16 * mib, read: func() heap { return now }, free: func() { freed++ }, setOne: func(a bool) { one = a }}
	var frees []int
	var alone []bool
	for _, allocate := range []uint64{
		200,  // the start
		1, 1, // quiet
		60,    // a burst
		10,    // it ebbs away
		1,     // quiet
		3, 30, // less than half of what is held, then more
		1,
	} {
		now.allocated += allocate * mib
		c.judge()
		frees, alone = append(frees, freed), append(alone, one)
	}
	if want := []int{0, 1, 1, 1, 1, 2, 2, 2, 2}; !slices.Equal(frees, want) {
		t.Errorf("freed %v times, want %v", frees, want)
	}
	if want := []bool{false, true, true, false, false, true, true, false, true}; !slices.Equal(alone, want) {
		t.Errorf("on one processor %v, want %v", alone, want)
	}
}

// TestSetOneProcessor goes to one processor and back.
func TestSetOneProcessor(t *testing.T) {
	all := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(all)
	setOneProcessor(true)
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("one processor: there are %d", n)
	}
	if setOneProcessor(false); runtime.GOMAXPROCS(0) < 1 || runtime.NumCPU() > 1 && runtime.GOMAXPROCS(0) == 1 {
		t.Errorf("back on %d processors of %d", runtime.GOMAXPROCS(0), runtime.NumCPU())
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
