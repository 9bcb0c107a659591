package nft

import (
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/compat/report"
	"github.com/weft-proxy/weft/nft/nfttest"
)

var document = flag.String("nft.table", "", "write the table into this document")

// outcome counts the tables for which a version did something right.
type outcome struct {
	tables, text, json, reload, same, like int
	// wrong are the first words of what went wrong.
	wrong []string
}

// TestVersions has each version list everything that weft commits.
func TestVersions(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	all := versions(t)
	d := start(t)
	tables, rules := d.corpora(t)
	own := []string{"ip weft", "ip6 weft"}
	tables = append(own, tables...)
	rows := [][]string{{"nft", "from", "text", "JSON", "loads its own text", "and lists the same", "same text as " + all[0].name}}
	reference := map[string]string{}
	for i, v := range all {
		t.Run(v.name, func(t *testing.T) {
			o := list(t, d, v, tables, reference, i == 0)
			for _, w := range o.wrong {
				t.Log(w)
			}
			// What weft itself publishes must be right everywhere, a rule of a corpus where
			// weft promises it: with the machine's version.
			if o.tables != o.text || o.tables != o.json {
				t.Errorf("nft %s lists %d of %d tables as text, %d as JSON", v.name, o.text, o.tables, o.json)
			}
			of := func(n int) string { return fmt.Sprintf("%d of %d", n, o.tables) }
			rows = append(rows, []string{v.name, v.source, of(o.text), of(o.json), of(o.reload), of(o.same), of(o.like)})
		})
	}
	text := report.Table(rows)
	t.Logf("%d tables, %d rules of corpora\n%s", len(tables), rules, text)
	if *document == "" || t.Failed() {
		return
	}
	text = fmt.Sprintf("`make nft-versions`, %s: %d tables with the Services, policies and %d rules.\n\n%s",
		time.Now().Format(time.DateOnly), len(tables), rules, text)
	if err := report.Write(*document, "nft", text); err != nil {
		t.Error(err)
	}
}

// list has a version list each table. reference has the texts of the first version.
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
	if _, err := nft(d.ns, "", "list", "ruleset"); err != nil {
		t.Errorf("list ruleset: %v", err)
	}
	if _, err := nft(d.ns, "", "-j", "list", "ruleset"); err != nil {
		t.Errorf("-j list ruleset: %v", err)
	}
	return o
}

// changing is what differs from one list to the next, and what says that weft holds the table: nft
// would take the table with it when it ends.
var changing = regexp.MustCompile(`(?m) expires [0-9a-z]+|packets \d+ bytes \d+|used \d+ bytes| # progname .*$|^\s*flags owner.*\n`)

func steady(text string) string { return changing.ReplaceAllString(text, "") }

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
