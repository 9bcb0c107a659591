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
	// gcPercent bounds a daemon's memory while it compiles large updates of a hostile publisher (TestPortSets of
	// cmd/weft/attack).
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

// idler returns memory and processors while a daemon is idle: the runtime would keep the garbage of
// a start or a resync.
//
// A single change passes through a dozen goroutines, and wakes a thread for each. An idle daemon
// therefore runs on one processor, until one period after a burst begins.
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
	// last was read a period ago, freed after the last collection.
	last, freed heap
	idle        bool
}

// In bytes.
type heap struct {
	// since the start
	allocated uint64
	// live and dead objects, and free pages
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

// judge frees memory after an idle period if the process holds half as much again as after the last
// time.
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

// setIdle keeps the operator's GOMAXPROCS and GOGC.
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
