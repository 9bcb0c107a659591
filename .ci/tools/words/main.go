// Command words reports phrases that stop a reader, and plainer ones: in comments, strings and identifiers of
// Go sources, in documents, protos, manifests and scripts.
//
//	words FILE...
//
// It also counts, in the comments and documents of each top-level folder, the forms of rates.go.
//
// It exits with 1 if it found any.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// phrase is a pattern of running text.
type phrase struct {
	pattern *regexp.Regexp
	instead string
	// except, if not nil, matches the text up to the end of an occurrence that
	// is good English.
	except *regexp.Regexp
}

var phrases = []phrase{
	{re(`\bcan not\b`), `"cannot"`, nil},
	{re(`\b(is|are|was|were|be) no [a-z]+`), `negate the verb: "is not a ..."`, re(`(?i)\b(there|where) (is|are|was|were|may be|must be|can be|will be) no [a-z]+$|\bno (longer|more|less|fewer|different|better|worse|later|earlier|larger|smaller|greater)$`)},
	{re(`\bnobody\b`), `name it: "no process", "no fragment"`, re("[\"`:]nobody$")},
	{re(`\bwhoever\b`), `"the program that", "the caller"`, nil},
	{re(`\bfor so long\b`), `"for at least N seconds"`, nil},
	{re(`\bof those\b`), `name the noun again`, re(`(?i)\b(one|two|any|each|all|none|most|some|many|both|either|which|list|subset|number) of those$`)},
	{re(`\bstands? (behind|before|beside|between)\b`), `"is", "follows", "precedes"`, nil},
	{re(`\bbehind (it|them|this|(the|a|an) (name|key|value|date|number|text|first|last|word|rule|element))\b`), `"after"; "behind" only for "behind a NAT"`, nil},
	{re(`\bwho (writes|is not|has|wants|needs)\b`), `"a program that", "if you"`, re(`(?i)\b(people|operators?|users?|readers?|authors?|engineers?|newcomers?|developers?|maintainers?|someone|anyone|everyone|somebody|anybody|everybody|administrators?|people that|those) who (writes|is not|has|wants|needs)$`)},
	{re(`\b(in|into|out of) step\b`), `"in sync", "reconcile"`, nil},
	{re(`\bha(s|ve|d) (its|their|his) way\b`), `"wins", "takes precedence"`, nil},
	{re(`\bwithout a word\b`), `"if it is not set", "silently"`, nil},
	{re(`\bwith no regard\b`), `"regardless of"`, nil},
	{re(`\bis had\b`), `"exists", "is available"`, nil},
}

// stems are words of identifiers that say less than the field's own terms.
var stems = map[string]string{
	"sift": "filter, reconcile", "sifted": "filtered, reconciled",
	"contest": "conflict", "contested": "conflict", "contests": "conflicts",
	"calm": "idle", "calms": "idle",
	"aside": "quarantined", "asides": "quarantined",
	"settle": "resolve, finish", "settled": "ready, resolved", "settles": "resolves",
	"doubt": "suspect", "doubts": "suspect", "doubtful": "suspect",
	"stick": "keep, retry", "sticks": "keep, retry",
	"wish": "desired", "wishes": "desired",
}

// identifiers that other people named.
var foreign = regexp.MustCompile(`^(errPinned|settled|ErrCodeEnhanceYourCalm)$`)

// camel matches a word of an identifier.
var camel = regexp.MustCompile(`[A-Z]+[^A-Z_]*|[^A-Z_]+`)

func re(s string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + s) }

func main() {
	found, all := 0, rates{}
	for _, name := range os.Args[1:] {
		report := func(line int, what, instead string) {
			fmt.Printf("%s:%d: %q: write %s\n", name, line, what, instead)
			found++
		}
		text, err := os.ReadFile(name)
		all.add(name, string(text))
		if err == nil && filepath.Ext(name) == ".go" {
			err = checkGo(name, text, report)
		} else {
			for i, line := range strings.Split(string(text), "\n") {
				checkText(i+1, line, report)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "words:", err)
			os.Exit(2)
		}
	}
	for _, problem := range all.problems() {
		fmt.Println(problem)
		found++
	}
	if found > 0 {
		fmt.Printf("words: %d found\n", found)
		os.Exit(1)
	}
	fmt.Printf("words: ok (%d files)\n", len(os.Args)-1)
}

// checkGo checks the comments, strings and identifiers of a source.
func checkGo(name string, text []byte, report func(int, string, string)) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	line := func(n ast.Node) int { return set.Position(n.Pos()).Line }
	for _, group := range file.Comments {
		// A phrase may span lines.
		checkText(line(group), strings.ReplaceAll(group.Text(), "\n", " "), report)
	}
	seen := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				checkText(line(n), n.Value, report)
			}
		case *ast.Ident:
			if seen[n.Name] || foreign.MatchString(n.Name) {
				break
			}
			seen[n.Name] = true
			for _, word := range camel.FindAllString(n.Name, -1) {
				if instead, ok := stems[strings.ToLower(word)]; ok {
					report(line(n), n.Name, instead)
				}
			}
		}
		return true
	})
	return nil
}

// checkText reports the phrases of a text.
func checkText(line int, text string, report func(int, string, string)) {
	for _, p := range phrases {
		for _, at := range p.pattern.FindAllStringIndex(text, -1) {
			if p.except == nil || !p.except.MatchString(text[:at[1]]) {
				report(line, text[at[0]:at[1]], p.instead)
			}
		}
	}
}
