package nft

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/compat/report"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// outcome counts tables.
type outcome struct {
	tables, text, json, reload, same, like int
	// the first words of failures
	wrong []string
}

// cannot counts the tables that a version does not list as text and as JSON, with the reason in
// compatibility.md: weft's own, and of corpora. Other counts are a failure.
var cannot = map[string]struct{ own, corpora int }{
	"1.0.2": {2, 19}, "1.0.3": {2, 10}, "1.0.4": {2, 10}, "1.0.5": {2, 3}, "1.1.6": {0, 1}, "1.1.7": {0, 1},
}

// TestVersions has each version list everything that weft commits.
func TestVersions(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	all := versions(t)
	d := start(t, objects...)
	tables, rules := d.corpora(t)
	own := []string{"ip weft", "ip6 weft", "ip weft-policy", "ip6 weft-policy"}
	rows := [][]string{{"nft", "from", "weft's tables", "of corpora as text", "as JSON", "loads its own text", "and lists the same", "same text as " + all[0].name}}
	reference := map[string]string{}
	for i, v := range all {
		t.Run(v.name, func(t *testing.T) {
			mine := list(t, d, v, own, reference, i == 0)
			o := list(t, d, v, tables, reference, i == 0)
			for _, w := range append(mine.wrong, o.wrong...) {
				t.Log(w)
			}
			bad := cannot[v.name]
			if own, corpora := mine.tables-min(mine.text, mine.json), o.tables-min(o.text, o.json); own != bad.own || corpora != bad.corpora {
				t.Errorf("nft %s does not list %d of weft's tables and %d of the corpora, want %d and %d", v.name, own, corpora, bad.own, bad.corpora)
			}
			_, err := d.ns.Output("", v.program, append(v.args, "list", "ruleset")...)
			if (err == nil) != (bad == struct{ own, corpora int }{}) {
				t.Errorf("list ruleset: %v", err)
			}
			of := func(n int) string { return fmt.Sprintf("%d of %d", n, o.tables) }
			verdict := "yes"
			if bad.own > 0 {
				verdict = fmt.Sprintf("**%d of %d**", mine.tables-bad.own, mine.tables)
			}
			rows = append(rows, []string{v.name, v.source, verdict, of(o.text), of(o.json), of(o.reload), of(o.same), of(o.like)})
		})
	}
	t.Logf("%d tables, %d rules of corpora\n%s", len(tables), rules, report.Table(rows))
}

// reference has the texts of the first version.
func list(t *testing.T, d *daemon, v version, tables []string, reference map[string]string, first bool) outcome {
	o := outcome{tables: len(tables)}
	fail := func(table, what string, err error) {
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %s: %.600v", table, what, err))
	}
	nft := func(ns *nfttest.NS, stdin string, args ...string) (string, error) {
		return ns.Output(stdin, v.program, append(v.args, args...)...)
	}
	for _, table := range tables {
		words := strings.Fields(table)
		text, err := nft(d.ns, "", "list", "table", words[0], words[1])
		if err != nil {
			fail(table, "text", err)
			continue
		}
		o.text++
		if text = steady(text); first {
			reference[table] = text
		}
		if text == reference[table] {
			o.like++
		}
		js, err := nft(d.ns, "", "-j", "list", "table", words[0], words[1])
		if err == nil && !json.Valid([]byte(js)) {
			err = fmt.Errorf("it is not JSON: %.200s", js)
		}
		if err == nil {
			o.json++
		} else {
			fail(table, "JSON", err)
		}
		empty := nfttest.New(t)
		if _, err := nft(empty, text, "-f", "-"); err != nil {
			fail(table, "load", err)
			continue
		}
		o.reload++
		again, err := nft(empty, "", "list", "table", words[0], words[1])
		if err == nil && steady(again) != text {
			err = fmt.Errorf("it lists %s", difference(text, steady(again)))
		}
		if err == nil {
			o.same++
		} else {
			fail(table, "list again", err)
		}
	}
	return o
}

// changing matches parts that differ between lists, and the mark of weft's ownership: nft would remove
// an owned table when it ends.
var changing = regexp.MustCompile(`(?m) expires [0-9a-z]+|packets \d+ bytes \d+|used \d+ bytes| # progname .*$|^\s*flags owner.*\n`)

func steady(text string) string {
	return strings.ReplaceAll(changing.ReplaceAllString(text, ""), "\n\n", "\n")
}

// difference returns the first line that differs.
func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%q in place of %q", y[i], x[i])
		}
	}
	return "more or fewer lines"
}
