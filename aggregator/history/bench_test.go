package history

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/store"
)

// BenchmarkRecord records commits that replace one element of a fragment with 5,000, as many in one
// transaction as come in its interval at 20 a second. The floor is a transaction with so many
// values of 200 bytes. CPU is that of the process.
//
//	go test -run '^$' -bench Record -benchtime 10000x ./aggregator/history
func BenchmarkRecord(b *testing.B) {
	const together = 20 * int(interval) / int(time.Second)
	ctx, dir := b.Context(), b.TempDir()
	s := store.New(store.Config{Path: dir, Retry: time.Second, Logger: slog.New(slog.DiscardHandler), Failed: func(string) { b.Error("cannot write") }})
	r := New(Config{Store: s, MaxEntries: DefaultMaxEntries, MaxBytes: DefaultMaxBytes, Lost: func(int) { b.Error("a commit is lost") }})
	if err := s.Load(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	address := func(n int) string { return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255) }
	members := make([]string, 5000)
	for i := range members {
		members[i] = address(i)
	}
	r.Record(snapshot(1, false, list("services", members...)))
	write := func() {
		if err := r.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	}
	write()
	before, n := cpu(b), 0
	for b.Loop() {
		c := patch(uint64(2+n), "services", []string{address(5000 + n)}, []string{address(n)})
		c.Revision.Changes = &weftv1.Counts{ElementsAdded: 1, ElementsDeleted: 1}
		r.Record(c)
		if n++; n%together == 0 {
			write()
		}
	}
	write()
	each := float64(cpu(b)-before) / float64(n)
	info, err := os.Stat(filepath.Join(dir, "state.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(each/1e6, "cpu-ms/op")
	b.ReportMetric(each/float64(floor(b, n, together)), "x-floor")
	b.ReportMetric(float64(info.Size())/(1<<20), "file-MiB")
}

// floor returns the CPU of one of n values.
func floor(b *testing.B, n, together int) time.Duration {
	b.Helper()
	db, err := bolt.Open(filepath.Join(b.TempDir(), "floor"), 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	before, value := cpu(b), make([]byte, 200)
	for i := 0; i < n; i += together {
		err := db.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("floor"))
			for j := i; err == nil && j < i+together; j++ {
				err = bucket.Put(fmt.Appendf(nil, "%08d", j), value)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return (cpu(b) - before) / time.Duration(n)
}

// cpu returns the CPU that the process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
