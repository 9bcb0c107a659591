package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// form is a form that makes a reader stop, with the most uses in 1,000 words. net/http's comments have 0.2,
// 0.5, 11.4, 0.5 and 0.1.
type form struct {
	name    string
	pattern *regexp.Regexp
	most    float64
}

var forms = []form{
	{"what", re(`\bwhat\b`), 0.5},
	{"those, whose", re(`\b(those|whose)\b`), 1},
	{"that, which", re(`\b(that|which)\b`), 15},
	{"nothing, none, nobody", re(`\b(nothing|none|nobody|no one)\b`), 1},
	{"of it, of them, of one", re(`\bof (it|them|one|theirs|its)\b`), 0.5},
}

// area is a top-level folder's comments or documents.
type area struct {
	words int
	uses  [5]int
}

// rates counts by area.
type rates map[string]*area

var (
	comment  = regexp.MustCompile(`(?:^|\s)//\s(.*)`)
	notProse = regexp.MustCompile(`^(go:|nolint|Copyright|\+build)`)
	code     = regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\|")
	word     = regexp.MustCompile(`(?i)[a-z']+`)
)

func (r rates) add(name, text string) {
	folder, _, _ := strings.Cut(name, "/")
	switch {
	case filepath.Ext(name) == ".md":
		r.count("documents of "+folder, code.ReplaceAllString(text, " "))
	case filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
		for line := range strings.Lines(text) {
			if m := comment.FindStringSubmatch(line); m != nil && !notProse.MatchString(m[1]) {
				r.count("comments of "+folder, m[1])
			}
		}
	}
}

func (r rates) count(of, text string) {
	if r[of] == nil {
		r[of] = &area{}
	}
	r[of].words += len(word.FindAllString(text, -1))
	for i := range forms {
		r[of].uses[i] += len(forms[i].pattern.FindAllString(text, -1))
	}
}

// problems returns a line for each form that an area uses too often.
func (r rates) problems() (out []string) {
	for of, a := range r {
		for i, f := range forms {
			if rate := 1000 * float64(a.uses[i]) / float64(max(a.words, 1)); rate > f.most {
				out = append(out, fmt.Sprintf("%s: %q %.1f times in 1,000 words (%d of %d): at most %.1f; name the thing", of, f.name, rate, a.uses[i], a.words, f.most))
			}
		}
	}
	slices.Sort(out)
	return out
}
