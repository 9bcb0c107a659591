package report

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

func spec(state types.SpecState, name, message string, took time.Duration) types.SpecReport {
	return types.SpecReport{
		ContainerHierarchyTexts: []string{"[sig-network] Services"}, LeafNodeText: name, LeafNodeType: types.NodeTypeIt,
		State: state, RunTime: took, Failure: types.Failure{Message: message},
	}
}

// results writes ginkgo's files of a run.
func results(t *testing.T, root, subject string, run int, all ...types.SpecReport) string {
	t.Helper()
	dir := Dir(root, subject, run)
	if err := os.MkdirAll(filepath.Dir(specs.Results(dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	report := types.Report{SpecReports: all, RunTime: 90 * time.Minute}
	text, err := json.Marshal([]types.Report{report})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(specs.Results(dir), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := reporters.GenerateJUnitReport(report, specs.JUnit(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// load returns the table of all runs, and its page.
func load(t *testing.T, root string) (*Table, string) {
	t.Helper()
	all, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	table := New(all)
	page, err := table.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	return table, page
}

// write returns the text of a file of results after a table is written into it.
func write(t *testing.T, table *Table, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.tsv")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := table.Write(file); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

const empty = "spec\tweft\n"

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	all := strings.Split(text, "\n")
	for _, l := range lines {
		if !slices.Contains(all, l) {
			t.Errorf("no line %q in:\n%s", l, text)
			return
		}
	}
}

func TestTable(t *testing.T) {
	root := t.TempDir()
	serve, pipe := "should serve [LinuxOnly] [Conformance]", "should a|b"
	for run, state := range []types.SpecState{types.SpecStatePassed, types.SpecStateFailed, types.SpecStatePassed} {
		results(t, root, "weft", run+1,
			spec(types.SpecStatePassed, serve, "", time.Duration(run+1)*time.Second),
			spec(state, pipe, "no answer\nstack", time.Second),
			spec(types.SpecStateSkipped, "should skip itself", "needs three zones", 0),
			spec(types.SpecStateSkipped, "should not be selected [Feature:PerformanceDNS]", "", 0))
	}
	results(t, root, "kube-proxy", 1, spec(types.SpecStatePassed, serve, "", 9*time.Second), spec(types.SpecStateTimedout, pipe, "late", time.Second))
	table, text := load(t, root)
	wantLines(t, text,
		"| passed | weft | kube-proxy 1.36.3 |",
		"| Conformance | 1 of 1 | 1 of 1 |",
		"| Others | 0 of 1 | 0 of 1 |",
		"| Runs | 3 | 1 |",
		"| Minutes of a run of all specs | 90 | 90 |",
		"| Services should serve [Conformance] | passed | passed | 2.0 |",
		`| Services should a\|b | **passed 2 of 3** | **failed** | 1.0 |`,
		"| Services should skip itself | skipped |  |  |",
		"* weft, passed 2 of 3: Services should a|b. `no answer`",
		"* kube-proxy 1.36.3, failed: Services should a|b. `late`",
		"* weft, skipped: Services should skip itself. `needs three zones`",
		"| `[Feature:PerformanceDNS]` | Measures the DNS server with 10,000 Services, not the proxy. |",
	)
	if strings.Contains(text, "should not be selected") {
		t.Error("the table has a spec that was not selected")
	}
	if got := table.Flakes(); len(got) != 1 || got[0] != "weft, passed 2 of 3: Services should a|b. no answer" {
		t.Errorf("flakes: %q", got)
	}
	const want = "spec\tweft\tkube-proxy 1.36.3\nServices should a|b\t**passed 2 of 3**\t**failed**\n" +
		"Services should serve [Conformance]\tpassed\tpassed\nServices should skip itself\tskipped\t\n"
	// A removed spec goes.
	results := write(t, table, empty+"Services should not be selected [Feature:PerformanceDNS]\tpassed\n")
	if results != want {
		t.Errorf("results:\n%swant\n%s", results, want)
	}
	// The same results again change nothing.
	if again := write(t, table, results); again != results {
		t.Errorf("written again:\n%s\nbefore:\n%s", again, results)
	}
}

func TestPartialRun(t *testing.T) {
	root := t.TempDir()
	results(t, root, "weft", 1, spec(types.SpecStatePassed, "one", "", time.Second), spec(types.SpecStatePassed, "two", "", time.Second))
	results(t, root, "kube-proxy", 1, spec(types.SpecStatePassed, "one", "", time.Second), spec(types.SpecStatePassed, "two", "", time.Second))
	all, _ := load(t, root)
	text := write(t, all, empty)
	old, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	part := t.TempDir()
	results(t, part, "weft", 1, spec(types.SpecStateFailed, "two", "refused", 3*time.Second), spec(types.SpecStateSkipped, "one", "", 0))
	table, _ := load(t, part)
	const want = "spec\tweft\tkube-proxy 1.36.3\nServices one\tpassed\tpassed\nServices two\t**failed**\tpassed\n"
	if text = write(t, table, text); text != want {
		t.Errorf("results:\n%swant\n%s", text, want)
	}
	if got := table.Regressions(old); len(got) != 1 || got[0] != "weft, failed: Services two. refused" {
		t.Errorf("regressions: %q", got)
	}
}

// TestIncomplete has a run with an unfinished spec: its time does not count as a full run's.
func TestIncomplete(t *testing.T) {
	root := t.TempDir()
	results(t, root, "weft", 1, spec(types.SpecStatePassed, "one", "", time.Second), spec(types.SpecStateSkipped, "two", "", 0))
	if _, text := load(t, root); strings.Contains(text, "Minutes of a run of all specs") {
		t.Errorf("got:\n%s", text)
	}
}

const policyRun = `=== RUN   TestConformance
    --- PASS: TestConformance/CNPAdminTier (3.00s)
        --- PASS: TestConformance/CNPAdminTier/Should_support_an_'allow'_policy (1.25s)
        --- FAIL: TestConformance/CNPAdminTier/Should_deny (0.10s)
    --- SKIP: TestConformance/CNPNodes (0.00s)
--- FAIL: TestConformance (9.00s)
FAIL
`

func TestPolicies(t *testing.T) {
	root := t.TempDir()
	dir := results(t, root, "weft", 1, spec(types.SpecStatePassed, "one", "", time.Second))
	if err := os.WriteFile(PolicyOutput(dir), []byte(policyRun), 0o644); err != nil {
		t.Fatal(err)
	}
	_, text := load(t, root)
	wantLines(t, text,
		"| ClusterNetworkPolicy | 1 of 2 |",
		"| ClusterNetworkPolicy CNPAdminTier/Should support an 'allow' policy | passed | 1.2 |",
		"| ClusterNetworkPolicy CNPAdminTier/Should deny | **failed** |  |",
		"| ClusterNetworkPolicy CNPNodes | skipped |  |")

	file := filepath.Join(t.TempDir(), "junit.xml")
	if err := JUnit(root, file); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var merged reporters.JUnitTestSuites
	if err := xml.Unmarshal(written, &merged); err != nil {
		t.Fatal(err)
	}
	if len(merged.TestSuites) != 2 || merged.Tests != 4 || merged.Failures != 1 || merged.TestSuites[1].Name != "ClusterNetworkPolicy, weft, run 1" {
		t.Errorf("merged: %+v", merged)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("no results: no error")
	}
	root := t.TempDir()
	if err := os.MkdirAll(Dir(root, "weft", 1), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(root); err == nil {
		t.Error("a run without results: no error")
	}
	for _, text := range []string{"", "spec\n", "a\tb\n", "spec\tweft\na\tb\tc\n"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestShort checks that the short names of all specs differ.
func TestShort(t *testing.T) {
	text, err := os.ReadFile("../specs/testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for name := range strings.Lines(string(text)) {
		name = strings.TrimSpace(name)
		short := Short(name)
		if other := seen[short]; other != "" {
			t.Errorf("%q and %q are both %q", name, other, short)
		}
		seen[short] = name
	}
}
