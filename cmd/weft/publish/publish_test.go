package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

var demo = nft.TableID{Family: nft.FamilyIP, Name: "demo"}

// start runs an aggregator with a kernel in memory.
func start(t *testing.T, k *aggregatortest.Kernel) *aggregatortest.Daemon {
	t.Helper()
	return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: t.TempDir(), Rate: rate.Inf}})
}

// parsed is an answer as a program reads it.
type parsed struct {
	ID         *uint64          `json:"id"`
	Revision   uint64           `json:"revision"`
	Line       int              `json:"line"`
	Error      string           `json:"error"`
	Violations []map[string]any `json:"violations"`
}

func parse(t *testing.T, line string) parsed {
	t.Helper()
	var a parsed
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		t.Fatalf("answer %q: %v", line, err)
	}
	return a
}

const declare = `{"id": 1, "snapshot": {"name": "list", "nft": "table ip demo { set blocked { type ipv4_addr; flags interval; elements = { 10.0.0.1 } }; }"}}`

// patchLine is a line that adds and removes an element of what declare declares.
func patchLine(id int, add, remove string) string {
	e := map[string]any{"set": "blocked"}
	if add != "" {
		e["add"] = []any{map[string]any{"key": add}}
	}
	if remove != "" {
		e["remove"] = []any{remove}
	}
	b, err := json.Marshal(map[string]any{"id": id, "patch": map[string]any{
		"fragment": "list", "tables": []any{map[string]any{"family": "ip", "name": "demo", "elements": []any{e}}},
	}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestEveryLineGetsItsAnswerInOrder(t *testing.T) {
	k := &aggregatortest.Kernel{}
	in := strings.Join([]string{
		declare,
		patchLine(2, "10.0.0.2", ""),
		"",
		patchLine(3, "nonsense", ""),
		`{"id": "4", "snapshott": {}}`,
		`{"id": 5}`,
		`not json`,
		`{"id": 6, "withdraw": "list", "more": true}`,
		`{"id": 7, "patch": {"fragment": "other"}}`,
		`{"id": 8, "snapshot": {"name": "other", "nft": "table ip other {\n chain c {\n  ip sadr 10.0.0.1 drop\n }\n}"}}`,
		`{"snapshot": {"name": "other", "tables": [{"family": "ip", "name": "other", "chains": [{"name": "c"}]}]}}`,
		`{"id": 10, "id": 11, "withdraw": "other"}`,
		patchLine(18446744073709551615>>1, "10.0.0.3", "10.0.0.1/32"),
		`{"id": 12, "withdraw": "other"}`,
	}, "\n")
	var out strings.Builder
	result, err := Run(aggregatortest.Context(t), Config{Client: start(t, k).Dial(t, "tester"), In: strings.NewReader(in), Out: &out})
	must(t, err)
	if want := (Result{Committed: 5, Refused: 8}); result != want {
		t.Errorf("result %+v: want %+v", result, want)
	}
	want := []struct {
		id, line int
		error    string
	}{
		{1, 0, ""},
		{2, 0, ""},
		{3, 4, `element ip demo blocked { nonsense }`},
		{4, 5, `malformed update (column 13): unknown field "snapshott"`},
		{5, 6, `the update is empty: want one of snapshot, patch and withdraw`},
		{-1, 7, `malformed update (column 1): `},
		{6, 8, `more is for gRPC`},
		{7, 9, `patch of other: no snapshot of the fragment: send a snapshot first`},
		{8, 10, `3:6: unknown field "sadr"`},
		{0, 0, ""},
		{11, 12, `duplicate field "id"`},
		{18446744073709551615 >> 1, 0, ""},
		{12, 0, ""},
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d answers: want %d:\n%s", len(lines), len(want), out.String())
	}
	last := uint64(0)
	for i, w := range want {
		a := parse(t, lines[i])
		switch {
		case (a.ID == nil) != (w.id < 0) || a.ID != nil && *a.ID != uint64(w.id):
			t.Errorf("answer %d: %s: want id %d", i, lines[i], w.id)
		case a.Line != w.line || (a.Error == "") != (w.error == "") || !strings.Contains(a.Error, w.error):
			t.Errorf("answer %d: %s: want line %d and error %q", i, lines[i], w.line, w.error)
		case (a.Revision == 0) != (w.error != "") || a.Revision != 0 && a.Revision < last:
			t.Errorf("answer %d: %s: want a revision from %d", i, lines[i], last)
		}
		last = max(last, a.Revision)
	}
	bad := parse(t, lines[8])
	if len(bad.Violations) != 1 || bad.Violations[0]["reason"] != "REASON_INVALID" || bad.Violations[0]["line"] != 3.0 {
		t.Errorf("violations %v", bad.Violations)
	}
	if got := k.Elements(demo, "blocked"); !slices.Equal(got, []string{"10.0.0.2", "10.0.0.3"}) {
		t.Errorf("elements %v", got)
	}
	if k.Rules(nft.TableID{Family: nft.FamilyIP, Name: "other"}, "c") != nil {
		t.Error("the withdrawn fragment is there")
	}
}

// counter is an input that counts the lines read from it.
type counter struct {
	lines atomic.Int64
	end   <-chan struct{}
}

func (c *counter) Read(b []byte) (int, error) {
	select {
	case <-c.end:
		return 0, io.EOF
	default:
	}
	n := c.lines.Add(1)
	line := patchLine(int(n)+1, fmt.Sprintf("10.1.%d.%d", n>>8&255, n&255), "")
	if n == 1 {
		line = declare
	}
	return copy(b, line+"\n"), nil
}

// TestInputWaitsForAnswers holds the kernel: only so much input is read, and
// when ctx ends Run says what is missing.
func TestInputWaitsForAnswers(t *testing.T) {
	hold := make(chan struct{})
	k := &aggregatortest.Kernel{Refuse: func(kernel.Op) (syscall.Errno, string) { <-hold; return 0, "" }}
	d := start(t, k)
	in := &counter{end: hold}
	ctx, cancel := context.WithCancel(aggregatortest.Context(t))
	done := make(chan error, 1)
	cl := d.Dial(t, "tester")
	go func() {
		_, err := Run(ctx, Config{Client: cl, In: in, Out: io.Discard})
		done <- err
	}()
	aggregatortest.Eventually(t, "the limit is reached", func() bool { return in.lines.Load() >= maxInFlight })
	// One is with the answering goroutine, one with the reading one, and what
	// the reader's buffer holds comes from one Read.
	if n := in.lines.Load(); n > maxInFlight+3 {
		t.Errorf("%d lines were read", n)
	}
	cancel()
	if err := <-done; !errors.Is(err, errInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	close(hold)
}

func TestInputAndOutputErrors(t *testing.T) {
	d := start(t, &aggregatortest.Kernel{})
	broken := errors.New("broken pipe")
	_, err := Run(aggregatortest.Context(t), Config{Client: d.Dial(t, "tester"), In: io.MultiReader(strings.NewReader(declare+"\n"), failing{broken}), Out: io.Discard})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "read line 2") {
		t.Errorf("input: %v", err)
	}
	_, err = Run(aggregatortest.Context(t), Config{Client: d.Dial(t, "tester"), In: strings.NewReader(declare), Out: failing{broken}})
	if !errors.Is(err, broken) {
		t.Errorf("output: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
