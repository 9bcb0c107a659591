package services

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateBehaviour = flag.Bool("update-behaviour", false, "write the last column of BEHAVIOUR.md anew")

const (
	behaviourTable = "BEHAVIOUR.md"
	lastBehaviour  = 170
)

var (
	// A tag ends the doc comment of a test, or stands in a story.
	behaviourTag = regexp.MustCompile(`^(?://|#) Behaviour: ([0-9, -]+)\.$`)
	behaviourFn  = regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)\(`)
	behaviourRow = regexp.MustCompile(`^\| (\d+) \| (.*) \| (.*) \|$`)
)

// TestBehaviourTable holds BEHAVIOUR.md against the tests: every number has a row,
// and every row names exactly the tests that are tagged with its number, or says
// in its text why weft is different on purpose.
func TestBehaviourTable(t *testing.T) {
	shown := behaviourTags(t, filepath.Join("..", ".."))
	b, err := os.ReadFile(behaviourTable)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	lines := strings.Split(string(b), "\n")
	for i, line := range lines {
		m := behaviourRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || seen[n] || n < 1 || n > lastBehaviour {
			t.Errorf("%s:%d: number %s is out of place", behaviourTable, i+1, m[1])
			continue
		}
		seen[n] = true
		want := strings.Join(shown[n], ", ")
		if want == "" && !strings.Contains(m[2], "not weft's") {
			t.Errorf("behaviour %d has no test: %s", n, m[2])
		}
		if m[3] == want {
			continue
		}
		lines[i] = fmt.Sprintf("| %d | %s | %s |", n, m[2], want)
		if !*updateBehaviour {
			t.Errorf("%s:%d: behaviour %d is shown by %q, and the table says %q (go test -run TestBehaviourTable ./frontends/services -update-behaviour)",
				behaviourTable, i+1, n, want, m[3])
		}
	}
	for n := 1; n <= lastBehaviour; n++ {
		if !seen[n] {
			t.Errorf("behaviour %d has no row", n)
		}
	}
	for n := range shown {
		if n < 1 || n > lastBehaviour {
			t.Errorf("%v are tagged with behaviour %d, which does not exist", shown[n], n)
		}
	}
	if *updateBehaviour {
		if err := os.WriteFile(behaviourTable, []byte(strings.Join(lines, "\n")), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
}

// behaviourTags returns, for each number, the tests that are tagged with it, as
// "TestName in path", sorted.
func behaviourTags(t *testing.T, root string) map[int][]string {
	t.Helper()
	out := make(map[int][]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar"):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return tagsOf(name, strings.Split(string(b), "\n"), out)
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range out {
		slices.Sort(out[n])
		out[n] = slices.Compact(out[n])
	}
	return out
}

func tagsOf(path string, lines []string, out map[int][]string) error {
	for i, line := range lines {
		m := behaviourTag.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		who := "`" + path + "`"
		if strings.HasSuffix(path, ".go") {
			if i+1 == len(lines) {
				return fmt.Errorf("%s:%d: a tag without a test", path, i+1)
			}
			fn := behaviourFn.FindStringSubmatch(lines[i+1])
			if fn == nil {
				return fmt.Errorf("%s:%d: a tag that does not end the comment of a test", path, i+1)
			}
			who = fmt.Sprintf("`%s` in %s", fn[1], path)
		}
		for _, part := range strings.Split(m[1], ",") {
			first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
			if !ranged {
				last = first
			}
			from, err := strconv.Atoi(first)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
			to, err := strconv.Atoi(last)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
			for n := from; n <= to; n++ {
				out[n] = append(out[n], who)
			}
		}
	}
	return nil
}
