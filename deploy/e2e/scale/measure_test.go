package scale

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
)

const (
	// The bounds of a proxy's phases.
	startPatience  = 5 * time.Minute
	changePatience = 2 * time.Minute
	// gap is between isolated changes: longer than weft's minimum time between two updates.
	gap = 150 * time.Millisecond
	// rollRate is in endpoints per second, rolled the replaced share.
	rollRate = 2000
	rolled   = 5 // one of so many
)

// measurement is one run of one proxy on one cluster.
type measurement struct {
	*proxy
	api     *api
	pop     *population
	monitor *monitor
	report  *report
	// the number of the next change
	turn int
}

func measure(ctx context.Context, l *network, a *api, pop *population, name string, r *report) (err error) {
	p, err := newProxy(ctx, l.Nodes[0], a, name, pop.size)
	if err != nil {
		return err
	}
	m := &measurement{proxy: p, api: a, pop: pop, report: r}
	defer func() {
		err = errors.Join(err, p.stop())
		if m.monitor != nil {
			err = errors.Join(err, m.monitor.close())
		}
	}()
	if err := m.firstStart(ctx); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	// The kernel then writes a notification for every element: not before the first start.
	if m.monitor, err = newMonitor(l.Nodes[0].Namespace); err != nil {
		return err
	}
	for _, phase := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"replace", m.replace}, {"add-and-remove", m.addAndRemove}, {"five-a-second", m.steady},
		{"rolling-update", m.roll}, {"idle", m.idle}, {"restart", m.restart},
	} {
		if err := phase.run(ctx); err != nil {
			return fmt.Errorf("%s: %s: %w", name, phase.name, errors.Join(err, m.running()))
		}
	}
	return nil
}

// running returns an error after the proxy's end.
func (m *measurement) running() error {
	if m.process == nil {
		return nil
	}
	return m.process.Err()
}

// firstStart measures until every Service answers.
func (m *measurement) firstStart(ctx context.Context) error {
	if err := m.start(); err != nil {
		return err
	}
	if err := answering(ctx, m.node, m.pop.size, startPatience); err != nil {
		return errors.Join(err, m.running())
	}
	return m.settled(ctx, "start", time.Since(m.started))
}

// settled reports the time of a start, and CPU and memory some time later, because late work for the
// start counts.
func (m *measurement) settled(ctx context.Context, phase string, wall time.Duration) error {
	if err := pause(ctx, *restFlag); err != nil {
		return err
	}
	used, err := m.cpu()
	if err != nil {
		return err
	}
	resident, peak, err := m.memory()
	if err != nil {
		return err
	}
	m.report.add(phase, 1, ms(wall, "wall-ms"), ms(used, "cpu-ms"), value{peak, "peak-MiB"}, value{resident, "settled-MiB"})
	return nil
}

// slice takes each turn another Service's slice, far from the last.
func (m *measurement) slice() (int, *discoveryv1.EndpointSlice) {
	m.turn++
	i := m.turn * 7919 % len(m.pop.slices)
	return i, m.pop.slices[i]
}

// change has the times from the beginning of the write.
type change struct {
	latencies []time.Duration
	cpu       time.Duration
}

// one writes a slice, and notes the time until the kernel had the new addresses, or, without any,
// committed; and the CPU until the proxy is idle.
func (m *measurement) one(ctx context.Context, c *change, i int, news ...netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, changePatience)
	defer cancel()
	before, err := m.cpu()
	if err != nil {
		return err
	}
	m.monitor.expect(news...)
	start := time.Now()
	if err := m.api.write(ctx, m.pop, i); err != nil {
		return err
	}
	var at time.Time
	if len(news) > 0 {
		at, err = m.monitor.all(ctx)
	} else {
		at, err = m.monitor.next(ctx, start)
	}
	if err != nil {
		return err
	}
	if err := pause(ctx, gap); err != nil {
		return err
	}
	after, err := m.cpu()
	c.cpu += after - before
	c.latencies = append(c.latencies, at.Sub(start))
	return err
}

// Some changes may have missed the kernel.
func (m *measurement) add(phase string, c change, more ...value) {
	n := len(c.latencies)
	values := []value{ms(quantile(c.latencies, 0.5), "p50-ms"), ms(quantile(c.latencies, 0.99), "p99-ms"), ms(c.cpu/time.Duration(n), "cpu-ms")}
	m.report.add(phase, n, append(values, more...)...)
}

// leastChanges is per phase, regardless of their time.
const leastChanges = 3

func (m *measurement) replace(ctx context.Context) error {
	var c change
	for start := time.Now(); time.Since(start) < *duration || len(c.latencies) < leastChanges; {
		i, slice := m.slice()
		if err := m.one(ctx, &c, i, m.pop.replace(slice, m.turn, 1)...); err != nil {
			return err
		}
	}
	m.add("replace", c)
	return nil
}

// addAndRemove repeatedly adds an endpoint and removes an older one.
func (m *measurement) addAndRemove(ctx context.Context) error {
	var added, removed change
	for start := time.Now(); time.Since(start) < *duration || len(added.latencies) < leastChanges; {
		i, slice := m.slice()
		e := m.pop.endpoint()
		slice.Endpoints = append(slice.Endpoints, e)
		if err := m.one(ctx, &added, i, address(e)); err != nil {
			return err
		}
		gone := m.turn % (len(slice.Endpoints) - 1)
		slice.Endpoints = slices.Delete(slice.Endpoints, gone, gone+1)
		if err := m.one(ctx, &removed, i); err != nil {
			return err
		}
	}
	m.add("add", added)
	m.add("remove", removed)
	return nil
}

// steady replaces five endpoints a second, of different Services, without waiting for the kernel.
func (m *measurement) steady(ctx context.Context) error {
	const interval = 200 * time.Millisecond
	before, err := m.cpu()
	if err != nil {
		return err
	}
	began := map[netip.Addr]time.Time{}
	start := time.Now()
	for n := 1; time.Since(start) < *duration || n <= leastChanges; n++ {
		i, slice := m.slice()
		news := m.pop.replace(slice, m.turn, 1)
		m.monitor.expect(news...)
		began[news[0]] = time.Now()
		if err := m.api.write(ctx, m.pop, i); err != nil {
			return err
		}
		if err := pause(ctx, time.Until(start.Add(time.Duration(n)*interval))); err != nil {
			return err
		}
	}
	patient, cancel := context.WithTimeout(ctx, changePatience)
	defer cancel()
	if _, err := m.monitor.all(patient); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err := pause(ctx, gap); err != nil {
		return err
	}
	after, err := m.cpu()
	if err != nil {
		return err
	}
	c := change{cpu: after - before}
	for a, start := range began {
		if at := m.monitor.when(a); !at.IsZero() {
			c.latencies = append(c.latencies, at.Sub(start))
		}
	}
	missed := m.monitor.forget()
	if len(c.latencies) == 0 {
		return fmt.Errorf("none of %d changes came to the kernel within %s", missed, changePatience)
	}
	m.add("5-a-second", c, value{float64(missed), "missed"})
	return nil
}

// roll replaces one of five endpoints of every slice, at rollRate if the API server can.
func (m *measurement) roll(ctx context.Context) error {
	before, err := m.cpu()
	if err != nil {
		return err
	}
	var work []func() error
	var due time.Duration
	var start, last time.Time
	for i, slice := range m.pop.slices {
		news := m.pop.replace(slice, 0, max(1, len(slice.Endpoints)/rolled))
		m.monitor.expect(news...)
		at := due
		work = append(work, func() error {
			if err := pause(ctx, time.Until(start.Add(at))); err != nil {
				return err
			}
			if i == len(m.pop.slices)-1 {
				last = time.Now()
			}
			return m.api.write(ctx, m.pop, i)
		})
		due += time.Duration(len(news)) * time.Second / rollRate
	}
	start = time.Now()
	if err := parallel(writers, work); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, changePatience)
	defer cancel()
	at, err := m.monitor.all(patient)
	if err != nil {
		return err
	}
	m.monitor.forget()
	if err := pause(ctx, gap); err != nil {
		return err
	}
	after, err := m.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, *restFlag); err != nil {
		return err
	}
	resident, peak, err := m.memory()
	if err != nil {
		return err
	}
	rate := float64(rollRate) * due.Seconds() / last.Sub(start).Seconds()
	m.report.add("rolling-update", 1, ms(max(0, at.Sub(last)), "converged-ms"), ms(after-before, "cpu-ms"), value{rate, "endpoints/s"},
		value{peak, "peak-MiB"}, value{resident, "settled-MiB"})
	return nil
}

// idle measures the cost without changes for Services.
func (m *measurement) idle(ctx context.Context) error {
	before, err := m.cpu()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := m.api.heartbeats(ctx, *duration); err != nil {
		return err
	}
	after, err := m.cpu()
	if err != nil {
		return err
	}
	m.report.add("idle", 1, value{100 * (after - before).Seconds() / time.Since(start).Seconds(), "%-of-a-core"})
	return nil
}

// The rules stay during a restart.
func (m *measurement) restart(ctx context.Context) error {
	if err := m.stop(); err != nil {
		return err
	}
	m.monitor.written()
	if err := m.start(); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	at, err := m.synced(patient)
	if err != nil {
		return err
	}
	if err := m.settled(ctx, "restart", at.Sub(m.started)); err != nil {
		return err
	}
	elements, rules := m.monitor.written()
	m.report.add("restart-writes", 1, value{float64(elements), "elements"}, value{float64(rules), "rules"})
	if m.name == weft && elements > 0 {
		return fmt.Errorf("%d elements were written or removed, want none", elements)
	}
	return answering(ctx, m.node, m.pop.size, changePatience)
}
