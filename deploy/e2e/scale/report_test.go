package scale

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

type value struct {
	n    float64
	unit string
}

func ms(d time.Duration, unit string) value { return value{d.Seconds() * 1e3, unit} }

// d need not be sorted.
func quantile(d []time.Duration, q float64) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

type subject struct {
	proxy string
	size  size
}

func (s subject) String() string { return fmt.Sprintf("%s/%s", s.proxy, s.size) }

type results struct {
	out io.Writer
	// in the order of measurement
	subjects []subject
	figures  map[figure][]float64
}

type figure struct {
	subject
	phase, unit string
}

func newResults(out io.Writer) *results {
	return &results{out: out, figures: map[figure][]float64{}}
}

func (r *results) of(s subject) *report {
	if !slices.Contains(r.subjects, s) {
		r.subjects = append(r.subjects, s)
	}
	return &report{results: r, subject: s}
}

type report struct {
	*results
	subject subject
}

// add writes a benchmark line: the phase, the number of operations, and the figures.
func (r *report) add(phase string, n int, values ...value) {
	line := fmt.Sprintf("BenchmarkScale/%s/%s\t%8d", r.subject, phase, n)
	for _, v := range values {
		f := figure{r.subject, phase, v.unit}
		r.figures[f] = append(r.figures[f], v.n)
		format := "%10.4g"
		if v.n >= 1000 {
			format = "%10.0f"
		}
		line += fmt.Sprintf("\t"+format+" %s", v.n, v.unit)
	}
	fmt.Fprintln(r.out, line)
}

// over all runs; false if there was none
func (r *results) median(f figure) (float64, bool) {
	all := slices.Sorted(slices.Values(r.figures[f]))
	if len(all) == 0 {
		return 0, false
	}
	return all[len(all)/2], true
}

// row is a figure with a limit in its unit.
type row struct {
	what        string
	phase, unit string
	limit       float64
	show        func(float64) string
	// the bare socket's wall time for the same, or empty
	floor string
	// single limits a single Service: among many the kernel walks all of the map services when a
	// verdict changes.
	single bool
}

// The floor is reported as a proxy of this name.
const (
	bareNetlink = "bare-netlink"
	floorAll    = "all-at-once"
	floorOne    = "one"
)

var rows = []row{
	{"start until every Service answers", "start", "wall-ms", 1500, milliseconds, floorAll, false},
	{"the same, CPU", "start", "cpu-ms", 2000, milliseconds, "", false},
	{"one endpoint replaced, CPU", "replace", "cpu-ms", 1, milliseconds, floorOne, false},
	{"one endpoint added, CPU; limit for a single Service", "add", "cpu-ms", 1, milliseconds, floorOne, true},
	{"one endpoint removed, CPU; limit for a single Service", "remove", "cpu-ms", 1, milliseconds, floorOne, true},
	{"one endpoint replaced, event until committed: median", "replace", "p50-ms", 3, milliseconds, floorOne, false},
	{"the same, p99", "replace", "p99-ms", 10, milliseconds, "", false},
	{"five changes a second, event until committed: median", "5-a-second", "p50-ms", 3, milliseconds, "", false},
	{"the same, p99", "5-a-second", "p99-ms", 10, milliseconds, "", false},
	{"20% of the endpoints replaced, 2,000 a second: committed after the last write", "rolling-update", "converged-ms", 300, milliseconds, "", false},
	{"resident memory after the start, settled", "start", "settled-MiB", 120, mebibytes, "", false},
	{"resident memory, peak, all of the above included", "rolling-update", "peak-MiB", 250, mebibytes, "", false},
	{"idle with heartbeats of 101 nodes, CPU", "idle", "%-of-a-core", 0.1, percent, "", false},
	{"restart until adopted and in sync", "restart", "wall-ms", 2000, milliseconds, "", false},
	{"the same, elements written or removed", "restart-writes", "elements", 0, count, "", false},
}

// for weft the figures, targets and the floor; for kube-proxy the ratio to weft
func (r *results) table(w io.Writer) {
	head, rule := "| what | must reach |", "| --- | --- |"
	columns := r.columns()
	for _, s := range columns {
		if s.proxy == weft {
			head += fmt.Sprintf(" %s | of the limit | of the floor |", title(s))
			rule += " --- | --- | --- |"
		} else {
			head += fmt.Sprintf(" %s %s | of weft's |", s.proxy, title(s))
			rule += " --- | --- |"
		}
	}
	fmt.Fprintf(w, "%s\n%s\n", head, rule)
	for _, row := range rows {
		line := fmt.Sprintf("| %s | %s |", row.what, row.show(row.limit))
		for _, s := range columns {
			line += r.cells(row, s)
		}
		fmt.Fprintln(w, line)
	}
}

// columns are the measured proxies, each kube-proxy after its weft.
func (r *results) columns() []subject {
	var all []subject
	for _, s := range r.subjects {
		if s.proxy != bareNetlink {
			all = append(all, s)
		}
	}
	return all
}

func (r *results) cells(row row, s subject) string {
	n, ok := r.median(figure{s, row.phase, row.unit})
	if !ok {
		return strings.Repeat(" |", map[bool]int{true: 3, false: 2}[s.proxy == weft])
	}
	out := fmt.Sprintf(" %s |", row.show(n))
	if s.proxy != weft {
		own, _ := r.median(figure{subject{weft, s.size}, row.phase, row.unit})
		return out + ratio(n, own)
	}
	if row.single && s.size.services > 1 {
		out += " |"
	} else {
		out += ratio(n, row.limit)
	}
	f, _ := r.median(figure{subject{bareNetlink, s.size}, row.floor, "wall-ms"})
	return out + ratio(n, f)
}

// empty without a divisor
func ratio(n, of float64) string {
	if of == 0 {
		return " |"
	}
	if n/of >= 100 {
		return fmt.Sprintf(" %.0f |", n/of)
	}
	return fmt.Sprintf(" %.2g |", n/of)
}

func title(s subject) string {
	return fmt.Sprintf("%s x %s", thousands(s.size.services), thousands(s.size.endpoints))
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

func milliseconds(n float64) string {
	switch {
	case n >= 1000:
		return fmt.Sprintf("%.3g s", n/1000)
	case n >= 100:
		return fmt.Sprintf("%.0f ms", n)
	default:
		return fmt.Sprintf("%.2g ms", n)
	}
}

func mebibytes(n float64) string { return fmt.Sprintf("%.0f MiB", n) }

func percent(n float64) string { return fmt.Sprintf("%.2g%%", n) }

func count(n float64) string { return thousands(int(n)) }
