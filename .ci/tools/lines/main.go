// Command lines counts the lines of a tree: of Go neither blank nor only a
// comment, by package, and the words of comments and of Markdown. Of generated
// code it counts all lines.
//
//	lines FILE...
//
// The product is the source in cmd, aggregator, frontends, nft and conntrack
// without tests, generated code and test kits: packages below a folder "testing" or
// one named like aggregatortest.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// product lists the folders of the product.
var product = []string{"aggregator", "cmd", "conntrack", "frontends", "nft"}

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	comment   = regexp.MustCompile(`(?:^|\s)//\s(.*)`)
	directive = regexp.MustCompile(`^(go:|nolint|\+build)`)
	word      = regexp.MustCompile(`[A-Za-z']+`)
)

// counts holds lines by kind, area and package, and words by kind.
type counts struct {
	packages map[string]int
	areas    map[string]map[string]int
	words    map[string]int
}

func main() {
	c := counts{packages: map[string]int{}, areas: map[string]map[string]int{}, words: map[string]int{}}
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "lines:", err)
			os.Exit(2)
		}
		switch filepath.Ext(name) {
		case ".go":
			c.goFile(name, string(text))
		case ".md":
			c.words["Markdown"] += len(strings.Fields(string(text)))
		}
	}
	c.print()
}

func (c *counts) goFile(name, text string) {
	area, _, _ := strings.Cut(name, "/")
	kind := kindOf(name, text)
	lines, words := 0, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if kind == "generated" || line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
		if m := comment.FindStringSubmatch(line); m != nil && !directive.MatchString(m[1]) {
			words += len(word.FindAllString(m[1], -1))
		}
	}
	if c.areas[area] == nil {
		c.areas[area] = map[string]int{}
	}
	c.areas[area][kind] += lines
	inProduct := slices.Contains(product, area)
	if kind == "source" && inProduct {
		c.packages[filepath.Dir(name)] += lines
	}
	switch {
	case kind == "generated":
	case kind == "tests":
		c.words["comments of tests"] += words
	case inProduct:
		c.words["comments of the product and its kits"] += words
	default:
		c.words["comments of the rest"] += words
	}
}

// kindOf returns source, tests, kits or generated.
func kindOf(name, text string) string {
	switch {
	case generated.MatchString(text):
		return "generated"
	case strings.HasSuffix(name, "_test.go"):
		return "tests"
	}
	for folder := range strings.SplitSeq(filepath.Dir(name), "/") {
		if folder == "testing" || strings.HasSuffix(folder, "test") {
			return "kits"
		}
	}
	return "source"
}

func (c *counts) print() {
	for _, name := range slices.Sorted(maps.Keys(c.packages)) {
		fmt.Printf("%8d  %s\n", c.packages[name], name)
	}
	kinds := []string{"source", "kits", "tests", "generated"}
	fmt.Printf("\n%-12s", "lines")
	for _, kind := range kinds {
		fmt.Printf("%10s", kind)
	}
	total, all := 0, map[string]int{}
	for _, area := range slices.Sorted(maps.Keys(c.areas)) {
		fmt.Printf("\n%-12s", area)
		for _, kind := range kinds {
			fmt.Printf("%10d", c.areas[area][kind])
			all[kind] += c.areas[area][kind]
		}
		if slices.Contains(product, area) {
			total += c.areas[area]["source"]
		}
	}
	fmt.Printf("\n%-12s", "all")
	for _, kind := range kinds {
		fmt.Printf("%10d", all[kind])
	}
	fmt.Printf("\n\nwords\n")
	for _, kind := range slices.Sorted(maps.Keys(c.words)) {
		fmt.Printf("%8d  %s\n", c.words[kind], kind)
	}
	fmt.Printf("\n%8d  product lines\n", total)
}
