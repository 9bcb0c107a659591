// Command words reports phrases that a Go engineer stumbles on, with what to
// write instead: in the comments and strings of Go sources, in documents, in
// protos, manifests and scripts, and in the identifiers that Go sources use.
//
//	words FILE...
//
// It exits with 1 if it found any.
package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
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
var foreign = regexp.MustCompile(`^(errPinned|settled)$`)

func re(s string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + s) }

func main() {
	found := 0
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "words:", err)
			os.Exit(2)
		}
		report := func(line int, what, instead string) {
			fmt.Printf("%s:%d: %q: write %s\n", name, line, what, instead)
			found++
		}
		if filepath.Ext(name) == ".go" {
			checkGo(name, text, report)
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			checkText(i+1, line, report)
		}
	}
	if found > 0 {
		fmt.Printf("words: %d found\n", found)
		os.Exit(1)
	}
	fmt.Printf("words: ok (%d files)\n", len(os.Args)-1)
}

// checkGo checks the comments, strings and identifiers of a source.
func checkGo(name string, text []byte, report func(int, string, string)) {
	if bytes.HasPrefix(text, []byte("// Code generated")) {
		return
	}
	set := token.NewFileSet()
	var s scanner.Scanner
	file := set.AddFile(name, -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	seen := map[string]bool{}
	// Consecutive line comments are one text, so that a phrase may span lines.
	var comment []string
	first, last := 0, 0
	flush := func() {
		if len(comment) > 0 {
			checkText(first, strings.Join(comment, " "), report)
		}
		comment = nil
	}
	for {
		pos, tok, lit := s.Scan()
		line := file.Line(pos)
		if tok == token.COMMENT {
			if len(comment) > 0 && line != last+1 {
				flush()
			}
			if len(comment) == 0 {
				first = line
			}
			comment, last = append(comment, strings.TrimSpace(strings.TrimPrefix(lit, "//"))), line
			continue
		}
		flush()
		switch tok {
		case token.EOF:
			return
		case token.STRING:
			checkText(line, lit, report)
		case token.IDENT:
			if seen[lit] || foreign.MatchString(lit) {
				continue
			}
			seen[lit] = true
			for _, word := range camel(lit) {
				if instead, ok := stems[word]; ok {
					report(line, lit, instead)
				}
			}
		}
	}
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

// camel returns the words of an identifier in lower case.
func camel(name string) (words []string) {
	start := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]) || runes[i] == '_' {
			words = append(words, strings.ToLower(strings.Trim(string(runes[start:i]), "_")))
			start = i
		}
	}
	return words
}
