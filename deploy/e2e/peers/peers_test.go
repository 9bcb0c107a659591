package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestPeers starts the engines in turns, changes a policy several times under each, and prints the
// figures.
func TestPeers(t *testing.T) {
	w, err := newWorld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	node := w.lab.Nodes[0]
	engines := []*engine{newWeft(node)}
	if *peerFlag != "" {
		peer, err := newPeer(node, *peerFlag)
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, peer)
	}
	results := make([]result, len(engines))
	for range *runsFlag {
		for i, e := range engines {
			if err := w.measure(t.Context(), e, &results[i]); err != nil {
				t.Fatalf("%s: %v", e.name, err)
			}
		}
	}
	printTable(engines, results)
}

type result struct {
	start, startCPU     []time.Duration
	opened, closed, cpu []time.Duration
	memory              []float64
	lost, passed, count int
}

// measure starts an engine, changes a policy several times, and stops it.
func (w *world) measure(ctx context.Context, e *engine, r *result) (err error) {
	if err := w.api.write(ctx, changedPolicy(false)); err != nil {
		return err
	}
	began := time.Now()
	if err := e.start(ctx, w.api.Kubeconfig); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	if err := w.started(ctx, e, r, began); err != nil {
		return errors.Join(fmt.Errorf("start: %w", err), e.process.Err())
	}
	began = time.Now()
	for i := range *changesFlag {
		if err := w.change(ctx, e, r, i%2 == 0); err != nil {
			return errors.Join(fmt.Errorf("change %d: %w", i, err), e.process.Err())
		}
	}
	lost, passed := w.strayed(began)
	r.lost, r.passed, r.count = r.lost+lost, r.passed+passed, r.count+*changesFlag
	_, peak, err := e.process.Memory()
	r.memory = append(r.memory, peak)
	return err
}

// started waits until all pairs obey the policies.
func (w *world) started(ctx context.Context, e *engine, r *result, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, *patienceFlag)
	defer cancel()
	var latest time.Time
	for _, p := range append([]*pair{w.changed}, w.denied...) {
		enforced, err := p.settled(ctx, began, false)
		if err != nil {
			return err
		}
		latest = later(latest, enforced)
	}
	for _, p := range w.allowed {
		enforced, err := p.settled(ctx, began, true)
		if err != nil {
			return err
		}
		latest = later(latest, enforced)
	}
	used, err := e.idle(ctx)
	if err != nil {
		return err
	}
	r.start, r.startCPU = append(r.start, latest.Sub(began)), append(r.startCPU, used)
	fmt.Printf("%s: start until enforced %s, CPU %s\n", e.name, round(latest.Sub(began)), round(used))
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// open admits the strangers.
func (w *world) change(ctx context.Context, e *engine, r *result, open bool) error {
	ctx, cancel := context.WithTimeout(ctx, *patienceFlag)
	defer cancel()
	before, err := e.idle(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.api.write(ctx, changedPolicy(open)); err != nil {
		return err
	}
	enforced, err := w.changed.settled(ctx, began, open)
	if err != nil {
		return err
	}
	after, err := e.idle(ctx)
	if err != nil {
		return err
	}
	latency, used := enforced.Sub(began), after-before
	if open {
		r.opened = append(r.opened, latency)
	} else {
		r.closed = append(r.closed, latency)
	}
	r.cpu = append(r.cpu, used)
	fmt.Printf("%s: change (open=%t) until enforced %s, CPU %s\n", e.name, open, round(latency), round(used))
	return nil
}

// round keeps about three digits.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}

type row struct {
	what  string
	value func(r result) string
}

var rows = []row{
	{"start until all policies are enforced, median", func(r result) string { return duration(median(r.start)) }},
	{"the same, CPU", func(r result) string { return duration(median(r.startCPU)) }},
	{"one policy admits more, until enforced: median", func(r result) string { return duration(median(r.opened)) }},
	{"one policy admits less, until enforced: median", func(r result) string { return duration(median(r.closed)) }},
	{"one policy change, the slowest", func(r result) string { return duration(slices.Max(slices.Concat(r.opened, r.closed))) }},
	{"one policy change, CPU: median", func(r result) string { return duration(median(r.cpu)) }},
	{"resident memory, peak", func(r result) string { return fmt.Sprintf("%.0f MiB", slices.Max(r.memory)) }},
	{"allowed packets lost during the changes", func(r result) string { return fmt.Sprintf("%d", r.lost) }},
	{"denied packets passed during the changes", func(r result) string { return fmt.Sprintf("%d", r.passed) }},
	{"changes", func(r result) string { return fmt.Sprintf("%d", r.count) }},
}

func printTable(engines []*engine, results []result) {
	head, line := "| what |", "| --- |"
	for _, e := range engines {
		head, line = head+" "+e.name+" |", line+" --- |"
	}
	fmt.Printf("\n%s\n%s\n", head, line)
	for _, row := range rows {
		fmt.Printf("| %s |", row.what)
		for _, r := range results {
			fmt.Printf(" %s |", row.value(r))
		}
		fmt.Println()
	}
	fmt.Println()
}

func duration(d time.Duration) string { return round(d).String() }

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return (d[(len(d)-1)/2] + d[len(d)/2]) / 2
}
