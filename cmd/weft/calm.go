package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// calm looks after a daemon between bursts of work.
//
// A start, a resync or a rolling update allocates several times what it keeps, and is
// followed by so little work that the runtime would sit on the garbage until its
// forced collection, and on the free pages for as long as its next goal has room for
// them. Calm has them given back.
//
// And a single change goes through a dozen goroutines, each of which waits for the one
// before: on several processors each step wakes a thread that looks for work in vain,
// which is a third of what the change costs. A calm daemon has one processor; in a
// burst it has all again, a period after the burst began at the latest.
type calm struct {
	// every is the length of a period, little what is allocated in a quiet one, worth
	// the least number of bytes that a collection is made for.
	every         time.Duration
	little, worth uint64
	read          func() heap
	free          func()
	alone         func(bool)
	// last is how the heap was a period ago, freed how it was when it was last freed.
	last, freed heap
	quiet       bool
}

// heap is what matters of the runtime's heap, in bytes.
type heap struct {
	// allocated counts from the start of the process.
	allocated uint64
	// held is what the process has of the system: objects, dead ones too, and what
	// is free but not given back.
	held uint64
}

func newCalm() *calm {
	c := &calm{every: 2 * time.Second, little: 2 << 20, worth: 16 << 20, read: readHeap, free: debug.FreeOSMemory, alone: alone}
	if os.Getenv("GOMAXPROCS") != "" {
		// Somebody has decided.
		c.alone = func(bool) {}
	}
	return c
}

// run looks once in a period until ctx ends, and returns nil then.
func (c *calm) run(ctx context.Context) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.look()
		}
	}
}

// look judges the period that ends. Memory is freed after a quiet one, if since the
// last time as much was allocated as makes it worth a collection: half of what is held.
func (c *calm) look() {
	now := c.read()
	quiet := now.allocated-c.last.allocated < c.little
	c.last = now
	if quiet && now.allocated-c.freed.allocated > max(c.worth, now.held/2) {
		c.free()
		c.freed = c.read()
		c.last = c.freed
	}
	if quiet != c.quiet {
		c.quiet = quiet
		c.alone(quiet)
	}
}

// alone has Go code run on one processor, or on all that the process may use.
func alone(one bool) {
	if one {
		runtime.GOMAXPROCS(1)
		return
	}
	runtime.SetDefaultGOMAXPROCS()
}

// readHeap asks the runtime, without stopping it.
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
