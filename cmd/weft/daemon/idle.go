package daemon

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent is how much a heap grows until it is collected. With Go's 100, the heap of a daemon that
	// compiles the large updates of a hostile publisher one after the other grows by up to 65 MiB
	// (TestPortSets of cmd/weft/attack), with this by 51.
	gcPercent = 75
	// idleGCPercent is the same for an idle daemon. A collection costs as much as 30 single changes.
	idleGCPercent = 150
)

// limitGarbage sets the percentage of an idle or busy daemon, unless the operator has set GOGC.
func limitGarbage(idle bool) {
	switch {
	case os.Getenv("GOGC") != "":
	case idle:
		debug.SetGCPercent(idleGCPercent)
	default:
		debug.SetGCPercent(gcPercent)
	}
}

// idler returns memory and processors while a daemon is idle.
//
// A start, a resync or a rolling update allocates several times what the process keeps.
// After it there is so little work that the runtime would keep the garbage until its
// forced collection, and the free pages as long as its next goal has room for them. The
// idler has them collected and returned.
//
// A single change passes through a dozen goroutines, each of which waits for the one
// before it. On several processors each step wakes a thread that finds no work, which
// is a third of the cost of the change. An idle daemon therefore runs on one processor.
// It has all of them again at most one period after a burst begins.
type idler struct {
	// period is the time between two looks at the heap.
	period time.Duration
	// quietBytes is how much an idle daemon allocates in a period at most.
	quietBytes uint64
	// minBytes is how much more the process must hold before a collection is worth it.
	minBytes uint64
	read     func() heap
	free     func()
	// setIdle is called when the daemon becomes idle or busy.
	setIdle func(bool)
	// last is the heap one period ago, freed the heap after it was last freed.
	last, freed heap
	idle        bool
}

// heap is the state of the runtime's heap, in bytes.
type heap struct {
	// allocated counts from the start of the process.
	allocated uint64
	// held is the memory obtained from the system and not returned: live and dead
	// objects, and free pages.
	held uint64
}

func newIdler() *idler {
	return &idler{period: 2 * time.Second, quietBytes: 2 << 20, minBytes: 16 << 20, read: readHeap, free: debug.FreeOSMemory, setIdle: setIdle}
}

// run judges each period until ctx ends. It returns nil.
func (i *idler) run(ctx context.Context) error {
	tick := time.NewTicker(i.period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			i.judge()
		}
	}
}

// judge looks at the period that ends. After an idle one it frees memory if the
// process holds half as much again as when it last did.
func (i *idler) judge() {
	now := i.read()
	idle := now.allocated-i.last.allocated < i.quietBytes
	i.last = now
	if idle && now.held > i.freed.held+max(i.minBytes, i.freed.held/2) {
		i.free()
		i.freed = i.read()
		i.last = i.freed
	}
	if idle != i.idle {
		i.idle = idle
		i.setIdle(idle)
	}
}

// setIdle makes Go code run on one processor and with more garbage, or on all processors
// that the process may use. It leaves alone GOMAXPROCS and GOGC if the operator has set them.
func setIdle(idle bool) {
	limitGarbage(idle)
	switch {
	case os.Getenv("GOMAXPROCS") != "":
	case idle:
		runtime.GOMAXPROCS(1)
	default:
		runtime.SetDefaultGOMAXPROCS()
	}
}

// readHeap reads the state of the heap without stopping the program.
func readHeap() heap {
	samples := [...]metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples[:])
	var v [len(samples)]uint64
	for i := range samples {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			v[i] = samples[i].Value.Uint64()
		}
	}
	return heap{allocated: v[0], held: v[1] + v[2] + v[3]}
}
