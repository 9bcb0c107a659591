package aggregator_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// stopwatch is a kernel that says how long its last commit took.
type stopwatch struct {
	*recorder
	took time.Duration
}

func (s *stopwatch) Commit(ops []kernel.Op) (kernel.Stats, error) {
	began := time.Now()
	defer func() { s.took = time.Since(began) }()
	return s.recorder.Commit(ops)
}

// cpuTime is what the process has used so far, the kernel's part included.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPatch replaces one endpoint of sets of several sizes, from the admission
// to the acknowledgement, without gRPC. The floor replays the same two messages over
// bare system calls in another namespace that holds the same. Commit is the part of
// nft/kernel; cpu and allocs are of the process for one patch, without the floor.
func BenchmarkPatch(b *testing.B) {
	for _, count := range []int{100, 10_000, 45_000} {
		s := Services{Count: count, Endpoints: 10}
		b.Run(fmt.Sprintf("elements=%d", s.Elements()), func(b *testing.B) { benchmarkPatch(b, s) })
	}
}

func benchmarkPatch(b *testing.B, s Services) {
	_, r := open(b)
	k := &stopwatch{recorder: r}
	d := aggregatortest.Start(b, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: b.TempDir(), Rate: rate.Inf}})
	session, err := d.Aggregator.Session("services", 1, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	push := func(req *weftv1.PublishRequest) time.Duration {
		began := time.Now()
		done, err := session.Push(req)
		if err != nil {
			b.Fatal(err)
		}
		if r := <-done; r.Err != nil {
			b.Fatal(r.Err)
		}
		return time.Since(began)
	}
	push(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: s.Fragment()}})
	snapshot := k.last(b)
	bare := openBare(b, nfttest.New(b), len(snapshot))
	bare.replay(b, snapshot)
	var batches [2][]byte
	patches := [2]*weftv1.PublishRequest{}
	for _, turn := range []int{1, 0} {
		patches[turn] = &weftv1.PublishRequest{Update: &weftv1.PublishRequest_Patch{Patch: s.ReplaceEndpoint(s.Count/2, 3, turn)}}
		push(patches[turn])
		batches[turn] = k.last(b)
		bare.replay(b, batches[turn])
	}
	var measured, commits, floor []time.Duration
	runtime.GC()
	turn := 0
	for b.Loop() {
		turn = 1 - turn
		measured = append(measured, push(patches[turn]))
		commits = append(commits, k.took)
		floor = append(floor, bare.replay(b, batches[turn]))
	}
	report(b, measured, map[string][]time.Duration{"floor": floor})
	b.ReportMetric(float64(median(commits).Nanoseconds())/1e6, "commit-ms")

	const patchesAlone = 1000
	var m [2]runtime.MemStats
	runtime.ReadMemStats(&m[0])
	began := cpuTime(b)
	for range patchesAlone {
		turn = 1 - turn
		push(patches[turn])
	}
	b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/patchesAlone, "cpu-us")
	runtime.ReadMemStats(&m[1])
	b.ReportMetric(float64(m[1].Mallocs-m[0].Mallocs)/patchesAlone, "allocs/patch")
}
