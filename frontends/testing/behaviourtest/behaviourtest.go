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

// Table is a list of behaviours and the place of their tests.
type Table struct {
	File string
	// page with the list and its tests
	Page string
	// begins a behaviour's tag, such as "Behaviour"
	Tag  string
	Root string
}

// environment variable of the directory for pages
const pages = "WEFT_PAGES"

var (
	function = regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)\(`)
	row      = regexp.MustCompile(`^(\d+)\t(.*)$`)
)

// Check compares the list with the tests: every number from 1 has a row, and a test unless its text says "not
// weft's"; every tag has a row.
func (b Table) Check(t *testing.T) {
	t.Helper()
	problems, page, err := b.compare()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	if dir := os.Getenv(pages); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, b.Page), []byte(page), 0o644); err != nil { //nolint:gosec // pages for people
			t.Fatal(err)
		}
	}
}

func (b Table) compare() (problems []string, page string, err error) {
	shown, err := b.tags()
	if err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(b.File)
	if err != nil {
		return nil, "", err
	}
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	seen, last := make(map[int]bool), 0
	var out strings.Builder
	for i, line := range strings.Split(string(text), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			fmt.Fprintf(&out, "\n## %s\n\n| number | behaviour | shown by |\n| --- | --- | --- |\n", title)
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || seen[n] || n < 1 {
			add("%s:%d: number %s is out of place", b.File, i+1, m[1])
			continue
		}
		seen[n], last = true, max(last, n)
		if len(shown[n]) == 0 && !strings.Contains(m[2], "not weft's") {
			add("behaviour %d has no test: %s", n, m[2])
		}
		fmt.Fprintf(&out, "| %d | %s | %s |\n", n, strings.ReplaceAll(m[2], "|", `\|`), strings.Join(shown[n], ", "))
	}
	for n := 1; n <= last; n++ {
		if !seen[n] {
			add("behaviour %d has no row", n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(shown)) {
		if !seen[n] {
			add("%v are tagged with behaviour %d, which does not exist", shown[n], n)
		}
	}
	return problems, out.String(), nil
}

// tags are as "TestName in path", sorted.
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
