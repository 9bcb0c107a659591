package scale

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// The table has the medians of all runs beside their targets.
func TestTable(t *testing.T) {
	s := size{10_000, 10}
	var lines bytes.Buffer
	r := newResults(&lines)
	r.of(subject{replay, bareNetlink, s}).add(floorAll, 1, value{200, "wall-ms"})
	for _, n := range []float64{900, 300, 600} {
		r.of(subject{replay, weft, s}).add("start", 1, value{n, "wall-ms"})
	}
	r.of(subject{replay, kubeProxy, s}).add("start", 1, value{12_000, "wall-ms"})
	r.of(subject{realAPI, weft, s}).add("start", 1, value{1500, "wall-ms"})

	if want := "BenchmarkScale/weft/replay/10000x10/start\t       1\t       900 wall-ms\n"; !strings.Contains(lines.String(), want) {
		t.Errorf("lines:\n%swant among them %q", &lines, want)
	}
	var table bytes.Buffer
	r.table(&table)
	got := strings.Split(table.String(), "\n")
	want := []string{
		"| what | must reach | 10,000 x 10 | of the limit | of the floor | kube-proxy 10,000 x 10 | of weft's | 10,000 x 10, kube-apiserver | of the limit | of the floor |",
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
		"| start until every Service answers | 1.5 s | 600 ms | 0.4 | 3 | 12 s | 20 | 1.5 s | 1 | 7.5 |",
		"| the same, CPU | 2 s | | | | | | | | |",
	}
	for i, line := range want {
		if got[i] != line {
			t.Errorf("line %d:\n%s\nwant\n%s", i, got[i], line)
		}
	}
	if len(got) != 2+len(rows)+1 {
		t.Errorf("%d lines, want a head and one for each of %d rows", len(got)-1, len(rows))
	}
}

func TestQuantile(t *testing.T) {
	var d []time.Duration
	for i := range 200 {
		d = append(d, time.Duration(200-i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 101, 0.99: 199, 1: 200} {
		if got := quantile(d, q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	if s, err := parseSize("10000x10"); err != nil || s != (size{10_000, 10}) || s.String() != "10000x10" {
		t.Errorf("10000x10 is %v, %v", s, err)
	}
	for _, bad := range []string{"", "10", "x10", "0x10", "10x-1", "60001x1", "10000x1000", "1x1x1"} {
		if s, err := parseSize(bad); err == nil {
			t.Errorf("%q is %v, want an error", bad, s)
		}
	}
}

// Addresses are unique, and in the networks that answer.
func TestPopulation(t *testing.T) {
	p := newPopulation(size{3, 250})
	if len(p.slices) != 9 {
		t.Fatalf("%d slices, want 3 for each service", len(p.slices))
	}
	seen := map[string]bool{}
	note := func(a string) {
		if seen[a] {
			t.Errorf("%s is used twice", a)
		}
		seen[a] = true
	}
	for _, s := range p.slices {
		for _, e := range s.Endpoints {
			note(e.Addresses[0])
			if !endpointCIDR.Contains(address(e)) {
				t.Errorf("%s is not in %s", address(e), endpointCIDR)
			}
		}
	}
	if len(seen) != p.total() {
		t.Errorf("%d endpoints, want %d", len(seen), p.total())
	}
	before := p.slices[2].Endpoints[49].Addresses[0]
	for _, a := range p.replace(p.slices[2], 49, 2) {
		note(a.String())
	}
	if after := p.slices[2].Endpoints[49].Addresses[0]; after == before || len(p.slices[2].Endpoints) != 50 {
		t.Errorf("endpoint 49 of %d is %s as before", len(p.slices[2].Endpoints), after)
	}
}
