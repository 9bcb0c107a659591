package nft

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/compat/report"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

var field = flag.String("nft.field", "", "compare weft with nft on the files of this directory")

// classes of files, in the order of the table
var classes = []string{"both accept and equal", "differ", "weft refuses", "nft refuses", "both refuse"}

// TestField loads each file of a directory with nft and with weft in separate namespaces, and prints
// the files by class with reasons.
func TestField(t *testing.T) {
	if *field == "" {
		t.Skip("no -nft.field")
	}
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	files := fieldFiles(t)
	d, theirs := start(t, "aggregator"), nfttest.New(t)
	var links strings.Builder
	for i, name := range interfacesOf(t, files) {
		fmt.Fprintf(&links, "link add name %s index %d type veth peer name peer%d\n", name, 1000+i, i)
	}
	for _, ns := range []*nfttest.NS{d.ns, theirs} {
		// Some matches are not names.
		_, _ = ns.Output(links.String(), "ip", "-force", "-batch", "-")
	}
	reasons := map[string][]string{}
	for _, file := range files {
		class, why := d.judge(t, theirs, file)
		name, _ := filepath.Rel(*field, file)
		reasons[class] = append(reasons[class], name+": "+why)
	}
	rows := [][]string{{"class", "files"}}
	for _, class := range classes {
		rows = append(rows, []string{class, fmt.Sprint(len(reasons[class]))})
	}
	for _, class := range classes[1:] {
		fmt.Printf("%s:\n  %s\n", class, strings.Join(reasons[class], "\n  "))
	}
	fmt.Printf("%d files of %s\n\n%s", len(files), *field, report.Table(rows))
	if n := len(reasons["differ"]); n > 0 {
		t.Errorf("%d files mean something else to weft than to nft", n)
	}
}

// fieldFiles leaves out hidden files.
func fieldFiles(t *testing.T) (files []string) {
	err := filepath.WalkDir(*field, func(path string, d fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(d.Name(), ".") && path != *field; {
		case hidden && d.IsDir():
			return fs.SkipDir
		case !hidden && d.Type().IsRegular():
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", *field, err)
	}
	return files
}

// interfaceNames matches interfaces for which nft needs an index or a device.
var interfaceNames = regexp.MustCompile(`(?:\b[io]if\b|\bdevices?\b|^define\s+\w+)[\s=!{]*("?[a-zA-Z][\w.@-]*"?(?:\s*,\s*"?[a-zA-Z][\w.@-]*"?)*)`)

func interfacesOf(t *testing.T, files []string) (names []string) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for line := range strings.Lines(string(text)) {
			for _, m := range interfaceNames.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
				for _, name := range strings.Split(m[1], ",") {
					if name = strings.Trim(strings.TrimSpace(name), `"`); name != "lo" && len(name) < 16 {
						names = append(names, name)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func at(file, verb string, args ...string) []string {
	return append([]string{verb, "-I", filepath.Dir(file), "-f", file}, args...)
}

// judge returns the class of a file, and why.
func (d *daemon) judge(t *testing.T, theirs *nfttest.NS, file string) (class, why string) {
	t.Helper()
	_, theirErr := theirs.Output("", "nft", "-I", filepath.Dir(file), "-f", file)
	theirList := theirs.Run(t, "nft", "list", "ruleset")
	theirs.Run(t, "nft", "flush", "ruleset")
	_, ourErr := d.run("", at(file, "apply", "--name", "field")...)
	ourList := d.ns.Run(t, "nft", "list", "ruleset")
	_, _ = d.run("", "delete", "field")
	switch {
	case ourErr != nil && theirErr != nil:
		return "both refuse", firstReason(theirErr)
	case ourErr != nil:
		return "weft refuses", firstReason(ourErr)
	case theirErr != nil:
		return "nft refuses", firstReason(theirErr)
	}
	if a, b := ordered(theirList), ordered(ourList); a != b {
		return "differ", difference(a, b)
	}
	return classes[0], ""
}

// reason matches the first error of nft or of weft.
var reason = regexp.MustCompile(`(?m):\d+:\d+(?:-\d+)?: (.+)$|rejected:\s+(.+)$`)

// without its place
func firstReason(err error) string {
	if m := reason.FindStringSubmatch(err.Error()); m != nil {
		return cmp.Or(m[1], m[2])
	}
	return err.Error()
}

// elementsOf matches the elements of a set, blockOf a table, and declaration the parts of a table.
var (
	elementsOf  = regexp.MustCompile(`(?s)elements = \{(.*?)\}`)
	blockOf     = regexp.MustCompile(`(?ms)^table .*?^\}\n`)
	declaration = regexp.MustCompile(`(?ms)^\t[a-z].*?^\t\}\n`)
	// indexOf matches comparisons of an interface's index with names: weft compares the name.
	indexOf = regexp.MustCompile(`\b([io]if)( != | )(["{@])`)
)

// namedChain matches weft's name for a chain in braces.
var namedChain = regexp.MustCompile(`\b[\w.-]+-[0-9a-f]{8}(?:-\d+)?\b`)

// unnested separates chains in braces, and weft's chains for these, with their rules, from a listing.
func unnested(text string) (rest, rules string) {
	var out, inner []string
	var take func(lines []string, in *[]string) []string
	take = func(lines []string, in *[]string) []string {
		line := lines[0]
		lines = lines[1:]
		head := namedChain.ReplaceAllString(line, "{")
		chain := strings.HasPrefix(strings.TrimSpace(line), "chain ") && head != line
		if !chain {
			*in = append(*in, head)
		}
		if !chain && !strings.HasSuffix(line, "jump {") && !strings.HasSuffix(line, "goto {") {
			return lines
		}
		end := line[:len(line)-len(strings.TrimLeft(line, "\t"))] + "}"
		var block []string
		for len(lines) > 0 && lines[0] != end {
			lines = take(lines, &block)
		}
		for _, l := range block {
			inner = append(inner, strings.TrimSpace(l))
		}
		return lines[min(1, len(lines)):]
	}
	for lines := strings.Split(text, "\n"); len(lines) > 0; {
		lines = take(lines, &out)
	}
	slices.Sort(inner)
	return strings.Join(out, "\n"), strings.Join(inner, "\n")
}

// ordered normalizes the order of tables, declarations and elements.
func ordered(text string) string {
	text, inner := unnested(text)
	text = indexOf.ReplaceAllString(steady(text), "${1}name$2$3")
	text = elementsOf.ReplaceAllStringFunc(text, func(list string) string {
		items := strings.Split(strings.Trim(strings.TrimPrefix(list, "elements ="), " {}\n\t"), ",")
		for i := range items {
			items[i] = strings.Join(strings.Fields(items[i]), " ")
		}
		slices.Sort(items)
		return "elements = { " + strings.Join(items, ",\n") + " }"
	})
	blocks := blockOf.FindAllString(text, -1)
	for i, block := range blocks {
		head, _, _ := strings.Cut(block, "\n")
		parts := declaration.FindAllString(block, -1)
		slices.Sort(parts)
		blocks[i] = head + "\n" + strings.Join(parts, "")
	}
	slices.Sort(blocks)
	return strings.Join(blocks, "") + inner
}
