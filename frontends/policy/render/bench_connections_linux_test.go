package render

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// connections opens and resets n TCP connections, and returns what each took.
func (l *lane) connections(n int, out []time.Duration) ([]time.Duration, error) {
	var listener int
	if err := l.server.Do(func() (err error) {
		if listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		_ = unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		if err = unix.Bind(listener, &unix.SockaddrInet4{Port: 8080}); err != nil {
			return err
		}
		return unix.Listen(listener, 1)
	}); err != nil {
		return nil, err
	}
	defer unix.Close(listener)
	err := l.client.Do(func() error {
		for range n {
			began := time.Now()
			from, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if err := unix.Connect(from, &unix.SockaddrInet4{Addr: labAddr(0, 2).As4(), Port: 8080}); err != nil {
				return err
			}
			to, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
			if err != nil {
				return err
			}
			_ = unix.SetsockoptLinger(from, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
			_ = unix.Close(from)
			_ = unix.Close(to)
			out = append(out, time.Since(began))
		}
		return nil
	})
	return out, err
}

// BenchmarkNewConnections opens connections between two pods with policies. ns/op is the median of
// the second lane. The ratios are of rates to a node that only tracks connections, more is better.
//
//	policies    a policy of each pod and direction
//	thousand    the same among 1,000 policies of other pods
//	interfaces  the same as policies, and the interfaces of both pods are known
func BenchmarkNewConnections(b *testing.B) {
	names := []string{"none", "policies", "thousand", "interfaces"}
	rules := []string{
		tracking,
		tracking + laneRules(b, func(*fixture) {}),
		tracking + laneRules(b, func(f *fixture) {
			for i := range 1000 {
				id := fmt.Sprintf("lab/p%d", i)
				f.policy(id, nil, nil)
				f.pod(fmt.Sprintf("lab/q%d", i), fmt.Sprintf("10.245.%d.%d", i/250, 1+i%250), []string{id}, []string{id})
			}
		}),
		tracking + laneRules(b, func(f *fixture) {
			for i := 1; i <= 2; i++ {
				f.pods[types.UID(fmt.Sprintf("lab/%d", i))].Link.Name = fmt.Sprintf("pod%d", i)
			}
		}),
	}
	lanes := make([]*lane, len(rules))
	for i := range rules {
		lanes[i] = newLane(b, rules[i])
		// The listener gets the port of its connection.
		for end, fd := range lanes[i].ends {
			_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
			_, lanes[i].ends[end] = unix.Close(fd), -1
		}
	}
	took := make([][]time.Duration, len(lanes))
	for b.Loop() {
		for i := range lanes {
			var err error
			if took[i], err = lanes[i].connections(50, took[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	var floor float64
	for i, all := range took {
		slices.Sort(all)
		median := float64(all[len(all)/2].Nanoseconds())
		switch i {
		case 0:
			floor = median
			continue
		case 1:
			b.ReportMetric(median, "ns/op")
		}
		b.ReportMetric(floor/median, names[i]+"-ratio")
	}
}
