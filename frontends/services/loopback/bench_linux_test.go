package loopback

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// cpu is the time of the CPU of this process, which has the clients and endpoints too.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// plain passes connections on with io.Copy, as the floor.
func plain(b *testing.B, to string) string {
	return endpoint(b, "tcp4", "127.0.0.1:0", func(client *net.TCPConn) {
		c, err := net.Dial("tcp", to)
		if err != nil {
			b.Error(err)
			return
		}
		backend := c.(*net.TCPConn)
		defer backend.Close()
		var back sync.WaitGroup
		back.Go(func() { _, _ = io.Copy(client, backend); _ = client.CloseWrite() })
		_, _ = io.Copy(backend, client)
		_ = backend.CloseWrite()
		back.Wait()
	})
}

// BenchmarkLoopbackNodePort copies 1 MiB each way on each of 64 connections: straight to the endpoint, with
// io.Copy between, and with the proxy. CPU is of all processes that take part.
func BenchmarkLoopbackNodePort(b *testing.B) {
	const connections, size = 64, 1 << 20
	send := func(w io.Writer) error { _, err := io.CopyN(w, zeros{}, size); return err }
	to := endpoint(b, "tcp4", "127.0.0.1:0", func(c *net.TCPConn) {
		var up sync.WaitGroup
		up.Go(func() { _ = send(c); _ = c.CloseWrite() })
		_, _ = io.Copy(io.Discard, struct{ io.Reader }{c})
		up.Wait()
	})
	proxy := begin(b, New(testConfig()))
	port := freePort(b)
	proxy.Apply([]model.Change{put("web", tcp(port, to))})
	through := netip.AddrPortFrom(model.Loopback[0], port).String()
	_ = proxy.connect(netip.MustParseAddrPort(through)).Close()
	for _, tt := range []struct{ name, at string }{{"straight", to}, {"io.Copy", plain(b, to)}, {"proxy", through}} {
		b.Run(tt.name, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				var clients sync.WaitGroup
				for range connections {
					clients.Go(func() {
						c, err := net.Dial("tcp", tt.at)
						if err != nil {
							b.Error(err)
							return
						}
						defer c.Close()
						var up sync.WaitGroup
						up.Go(func() { _ = send(c); _ = c.(*net.TCPConn).CloseWrite() })
						if n, err := io.Copy(io.Discard, struct{ io.Reader }{c}); n != size || err != nil {
							b.Errorf("%d bytes, %v", n, err)
						}
						up.Wait()
					})
				}
				clients.Wait()
			}
			gib := float64(b.N) * connections * 2 * size / (1 << 30)
			b.ReportMetric((cpu(b)-before).Seconds()/gib, "cpu-s/GiB")
			b.ReportMetric(b.Elapsed().Seconds()/gib, "s/GiB")
		})
	}
}

// BenchmarkLoopbackPorts opens and closes 1,000 NodePorts of two families.
func BenchmarkLoopbackPorts(b *testing.B) {
	const ports = 1000
	var limit syscall.Rlimit
	must(b, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Cur < 16*ports {
		b.Skipf("the limit of open files is %d, want %d", limit.Cur, 16*ports)
	}
	p := begin(b, New(testConfig()))
	var come, go_ []model.Change
	for i := range ports {
		port := tcp(uint16(20000+i), "10.244.1.1:80")
		port.Backends[model.IPv6].Cluster = endpoints("[fd00::2]:80")
		c := put(fmt.Sprint(i), port)
		come, go_ = append(come, c), append(go_, model.Change{Name: c.Name})
	}
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	open := func(n int) { p.await(fmt.Sprint(n, " listeners"), func() bool { return p.Open(0)+p.Open(1) == n }) }
	var more uint64
	for b.Loop() {
		before := memory()
		p.Apply(come)
		open(2 * ports)
		more = memory() - before
		p.Apply(go_)
		open(0)
	}
	b.ReportMetric(2*ports, "listeners")
	b.ReportMetric(float64(more)/(2*ports), "B/listener")
}
