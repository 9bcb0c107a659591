package behaviourtest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Table is a table of behaviours in the directory of its test.
type Table struct {
	// File is the file name, such as "BEHAVIOUR.md".
	File string
	// Tag begins a behaviour's tag, such as "Behaviour".
	Tag string
	// Last is the highest number.
	Last int
	// Root is the directory of all tests.
	Root string
	// Update writes the last column instead of checking it.
	Update bool
}

var (
	function = regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)\(`)
	row      = regexp.MustCompile(`^\| (\d+) \| (.*) \| (.*) \|$`)
)

// Check compares a table with the tests. Every number has a row naming exactly the tests tagged with it,
// at least one unless its text says "not weft's".
func (b Table) Check(t *testing.T) {
	t.Helper()
	problems, text, err := b.compare()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	if b.Update {
		if err := os.WriteFile(b.File, []byte(text), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
}

// compare returns the table's problems and its corrected text.
func (b Table) compare() (problems []string, text string, err error) {
	shown, err := b.tags()
	if err != nil {
		return nil, "", err
	}
	before, err := os.ReadFile(b.File)
	if err != nil {
		return nil, "", err
	}
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	seen := make(map[int]bool)
	lines := strings.Split(string(before), "\n")
	for i, line := range lines {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || seen[n] || n < 1 || n > b.Last {
			add("%s:%d: number %s is out of place", b.File, i+1, m[1])
			continue
		}
		seen[n] = true
		want := strings.Join(shown[n], ", ")
		if want == "" && !strings.Contains(m[2], "not weft's") {
			add("behaviour %d has no test: %s", n, m[2])
		}
		if m[3] == want {
			continue
		}
		lines[i] = fmt.Sprintf("| %d | %s | %s |", n, m[2], want)
		if !b.Update {
			add("%s:%d: behaviour %d is shown by %q, and the table says %q (go test -run TestBehaviourTable . -update-behaviour)", b.File, i+1, n, want, m[3])
		}
	}
	for n := 1; n <= b.Last; n++ {
		if !seen[n] {
			add("behaviour %d has no row", n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(shown)) {
		if n < 1 || n > b.Last {
			add("%v are tagged with behaviour %d, which does not exist", shown[n], n)
		}
	}
	return problems, strings.Join(lines, "\n"), nil
}

// tags returns each number's tests, as "TestName in path", sorted.
func (b Table) tags() (map[int][]string, error) {
	// A tag ends a test's doc comment, or is a line of a story.
	tag := regexp.MustCompile(`^(?://|#) ` + b.Tag + `: ([0-9, -]+)\.$`)
	out := make(map[int][]string)
	err := filepath.WalkDir(b.Root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(b.Root, path)
		if err != nil {
			return err
		}
		return tagsOf(tag, name, strings.Split(string(text), "\n"), out)
	})
	for n := range out {
		slices.Sort(out[n])
		out[n] = slices.Compact(out[n])
	}
	return out, err
}

func tagsOf(tag *regexp.Regexp, path string, lines []string, out map[int][]string) error {
	for i, line := range lines {
		m := tag.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		who := "`" + path + "`"
		if strings.HasSuffix(path, ".go") {
			if i+1 == len(lines) {
				return fmt.Errorf("%s:%d: a tag without a test", path, i+1)
			}
			fn := function.FindStringSubmatch(lines[i+1])
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
