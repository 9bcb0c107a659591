package isolation

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// With some settings of rp_filter the kernel itself drops forged sources of IPv4. IPv6 has no such
// setting, and uses only the first.
var rpFilters = []int{0, 1, 2}

// sent are the cases for the i-th of rpFilters.
func sent(cases []*sample, i int) []*sample {
	if i == 0 {
		return cases
	}
	return slices.DeleteFunc(slices.Clone(cases), func(c *sample) bool { return c.src.Is6() })
}

// TestIsolation: packets from and to a pod under deny-all never arrive, for all addresses, protocols
// and frames; open connections are cut; pods without policies are unaffected.
//
// Policy behaviour: 32, 33, 37, 41.
func TestIsolation(t *testing.T) {
	began := time.Now()
	w := newWorld(t)
	w.count(t)
	w.serve(t)
	cases := w.cases(t)
	without := make([]arrivals, len(rpFilters))
	for i, rp := range rpFilters {
		without[i] = w.measure(t, sent(cases, i), rp)
	}
	w.start(t)
	open := w.open(t)
	w.deny(t)
	r := newResult()
	w.checkOpen(open, r)
	w.checkForged(t, open, r)
	with := make([]arrivals, len(rpFilters))
	for i, rp := range rpFilters {
		with[i] = w.measure(t, sent(cases, i), rp)
	}
	w.checkProbes(t, r)
	w.checkNeighbours(t, r)
	for i, rp := range rpFilters {
		for _, c := range sent(cases, i) {
			for _, e := range append(c.site.pods(), c.site.node, w.outside) {
				if e != c.from {
					r.add(c, e, rp, without[i][e][c.id], with[i][e][c.id])
				}
			}
		}
	}
	t.Logf("%d kinds of packets, those of IPv4 with rp_filter %v, each twice without and with weft: %v", len(cases), rpFilters, time.Since(began).Round(time.Second))
	r.save(t)
	for _, row := range append(slices.Clone(rows), rowFree) {
		t.Run(row, func(t *testing.T) { r.report(t, row) })
	}
	t.Run("document", r.document)
}

// rowFree has the cases without an isolated pod.
const rowFree = "between others"

var familyNames = [2]string{"IPv4", "IPv6"}

type cell struct{ row, direction, plugin string }

type outcome struct {
	// reached is true if packets arrive without weft, so that weft drops them.
	reached bool
	// passed has families that wrongly passed, lost families that wrongly did not.
	passed, lost map[string]bool
	failures     []string
	// arrivals without weft and with weft
	without, with int
	// seen is true if optional packets arrived; verb is the word for the others, by default dropped.
	seen bool
	verb string
}

// passed means that packets wrongly passed, otherwise that they wrongly did not.
func (o *outcome) fails(family int, passed bool, text string) {
	set := o.lost
	if passed {
		set = o.passed
	}
	set[familyNames[family]] = true
	o.failures = append(o.failures, text)
}

type result struct{ cells map[cell]*outcome }

func newResult() *result { return &result{cells: make(map[cell]*outcome)} }

func (r *result) cell(row, direction, plugin string) *outcome {
	at := cell{row, direction, plugin}
	if r.cells[at] == nil {
		r.cells[at] = &outcome{passed: map[string]bool{}, lost: map[string]bool{}}
	}
	return r.cells[at]
}

// add compares a case at an end with the law.
func (r *result) add(c *sample, at *end, rpFilter int, without, with bool) {
	row, direction := rowFree, ""
	switch c.site.isolated {
	case c.from:
		row, direction = c.row(), "from"
	case at:
		row, direction = c.row(), "to"
	}
	o := r.cell(row, direction, c.site.plugin)
	if without {
		o.reached = true
		o.without++
	}
	if with {
		o.with++
	}
	family := c.family()
	switch law := c.law(at, without); {
	case with && law == mustNot:
		o.fails(family, true, fmt.Sprintf("%s, rp_filter %d: arrived at %s", c, rpFilter, at.name))
	case !with && law == must:
		o.fails(family, false, fmt.Sprintf("%s, rp_filter %d: did not arrive at %s", c, rpFilter, at.name))
	default:
		o.seen = o.seen || with
	}
}

// examples bounds the failures of a cell in the report.
const examples = 5

// report fails if a case of the row broke the law.
func (r *result) report(t *testing.T, row string) {
	for at, o := range r.cells {
		if at.row != row {
			continue
		}
		where := at.plugin + ", " + cmp.Or(at.direction, "others")
		t.Logf("%s: %d arrivals without weft, %d with it", where, o.without, o.with)
		if len(o.failures) == 0 {
			continue
		}
		step := max(1, len(o.failures)/examples)
		for i := 0; i < len(o.failures); i += step {
			t.Log(o.failures[i])
		}
		t.Errorf("%s: %d failures, which %s lists", where, len(o.failures), failuresFile)
	}
}

// failuresFile has all failures; report only counts them.
const failuresFile = logDir + "/failures"

func (r *result) save(t *testing.T) {
	t.Helper()
	var b strings.Builder
	for at, o := range r.cells {
		for _, f := range o.failures {
			fmt.Fprintf(&b, "%s: %s, %s: %s\n", at.row, at.plugin, at.direction, f)
		}
	}
	if err := os.WriteFile(failuresFile, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
