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
	// gcPercent bounds a daemon that compiles large updates of a hostile publisher (TestPortSets of
	// cmd/weft/attack): it grows by up to 51 MiB, with Go's 100 by 65.
	gcPercent = 75
	// A collection costs as much as 30 single changes.
	idleGCPercent = 150
)

// limitGarbage keeps the operator's GOGC.
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
// A start, a resync or a rolling update allocates several times the memory that the process keeps. In
// the quiet time afterwards the runtime would keep the garbage until its forced collection, and the
// free pages as long as its next goal has room for them. The idler returns both.
//
// A single change passes through a dozen goroutines in sequence. On several processors each step wakes
// a thread that finds no work, a third of the cost of the change. An idle daemon therefore runs on one
// processor, and on all again at most one period after a burst begins.
type idler struct {
	// between two looks at the heap
	period time.Duration
	// most allocations of an idle daemon in a period
	quietBytes uint64
	// least growth that is worth a collection
	minBytes uint64
	read     func() heap
	free     func()
	setIdle  func(bool)
	// last is one period old, freed is from after the last collection.
	last, freed heap
	idle        bool
}

// heap is the state of the runtime's heap, in bytes.
type heap struct {
	// since the start of the process
	allocated uint64
	// memory not returned to the system: live and dead objects, and free pages
	held uint64
}

func newIdler() *idler {
	return &idler{period: 2 * time.Second, quietBytes: 2 << 20, minBytes: 16 << 20, read: readHeap, free: debug.FreeOSMemory, setIdle: setIdle}
}

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

// judge ends a period. After an idle one it frees memory if the process holds half as much again as
// after the last time.
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

// setIdle gives Go one processor and more garbage, or all processors. It keeps the operator's
// GOMAXPROCS and GOGC.
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

// readHeap does not stop the program.
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
