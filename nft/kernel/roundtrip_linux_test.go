package kernel

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftjson "github.com/weft-proxy/weft/nft/json"
	nftset "github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// listedOtherwise are rules that weft reads from nft's listing in another way than nft,
// and why.
var listedOtherwise = map[string]string{
	"update @tim { ip saddr timeout 500ms }": "JSON has whole seconds",
	"ct expiration 500ms":                    "JSON has whole seconds",
	"ct original saddr 10.0.0.0/8":           "nft lists the prefix as a number of one byte",
	"tcp option 253 { exists, missing }":     "JSON has the presence of an unknown option as its first byte",
	"@nh,0,8 1":                              fieldPrefix,
	"@nh,0,8 4 @nh,8,8 5":                    fieldPrefix,
	"@nh,8,8 5 @nh,0,8 4":                    fieldPrefix,
	"@nh,0,8 4 counter @nh,8,8 5":            fieldPrefix,
	"@nh,0,8 != 4 @nh,8,8 != 5":              fieldPrefix,
}

// fieldPrefix is the reason for raw payload in the IPv6 header.
const fieldPrefix = "nft lists it as prefixes of fields of some bits, which it reads otherwise or not at all"

// madeOtherwise are chains and sets that nft lists in another way if it created them
// itself, by a part of the listing, and why.
var madeOtherwise = map[string]string{
	"[invalid type]":  "nft stores a typeof of ct proto-dst that it cannot read back: weft leaves it out",
	"flags dynamic\n": "nft makes a set dynamic when a rule of the same file writes into it",
}

// excused reports whether a difference between listings is known.
func excused(theirs string) bool {
	for piece := range madeOtherwise {
		if strings.Contains(theirs, piece) {
			return true
		}
	}
	return false
}

// TestRoundTrip commits the rules of all corpora. nft must list them, as text and as JSON,
// like rules that it created itself, and weft must read the listing as nft does.
func TestRoundTrip(t *testing.T) {
	total, again := 0, 0
	for _, c := range readCorpora(t) {
		t.Run(c.Name, func(t *testing.T) {
			rules, refused := c.acceptedByKernel(t, c.sameAsTold(t))
			for text, err := range refused {
				t.Errorf("%s\n  compiles, but the kernel refuses it: %v", text, err)
			}
			for _, bad := range c.unlistable(t, rules) {
				t.Errorf("%s\n  compiles, but nft cannot list it: %v", bad.text, c.tryList(t, []compiled{bad}))
				rules = slices.DeleteFunc(rules, func(r compiled) bool { return r.text == bad.text })
			}
			ns := nfttest.New(t)
			commit(t, open(t, ns, Config{NoOwner: true}), c.ops(rules)...)
			text, object := ns.Run(t, "nft", "list", "ruleset"), ns.Run(t, "nft", "-j", "list", "ruleset")
			total += len(rules)
			again += c.sameFromText(t, rules, text, object)
			c.sameAsNFT(t, rules, text, object)
		})
	}
	t.Logf("%d rules, %d are the same when they are read from nft's list", total, again)
}

// sameAsTold returns the rules that nft compiles to the same form. The tests of package
// compile cover the others.
func (c *corpus) sameAsTold(t *testing.T) []compiled {
	t.Helper()
	theirs := c.ask(t, c.Rules)
	return slices.DeleteFunc(c.compileAll(c.Rules), func(r compiled) bool {
		a := theirs[r.text]
		return !a.OK || a.Netlink != r.rule.DumpSets()+r.rule.Dump()
	})
}

// sameFromText reads nft's listing, and returns how many rules equal the committed
// ones. Not all do, because nft omits what it considers implied.
func (c *corpus) sameFromText(t *testing.T, rules []compiled, text, object string) (same int) {
	t.Helper()
	tables, _, parseErr := nftjson.ParsePositions("list", text)
	if len(tables) != 1 {
		t.Fatalf("%s: %d tables in nft's list", c.Name, len(tables))
	}
	scope := c.sameSets(t, tables[0], text)
	listed := make([]string, len(rules))
	blocks := blocksOf(text)
	for i := range rules {
		_, rule, _ := strings.Cut(blocks["chain "+chainOf(i)+" {"], "{\n")
		listed[i] = strings.TrimSpace(strings.TrimSuffix(rule, "\t}\n"))
	}
	fromJSON := c.rulesFromJSON(t, object)
	theirs := c.ask(t, listed)
	for i, want := range rules {
		got, err := compile.CompileRule(c.family, nft.Rule{Text: listed[i]}, scope)
		if err == nil && got.Fingerprint == want.rule.Fingerprint {
			same++
		}
		if err == nil && listedOtherwise[want.text] == "" {
			c.sameRule(t, want, got, fromJSON[chainOf(i)], scope)
		}
		if !theirs[listed[i]].OK {
			// nft cannot read its own listing.
			parseErr = nil
		}
		switch nft := theirs[listed[i]]; {
		case nft.Kernel || listedOtherwise[want.text] != "":
		case !nft.OK && err == nil:
			t.Errorf("%s\n  nft lists %s\n  which weft compiles, but nft refuses", want.text, listed[i])
		case nft.OK && err != nil:
			t.Errorf("%s\n  nft lists %s\n  which does not compile: %v", want.text, listed[i], err)
		case nft.OK && got.DumpSets()+got.Dump() != nft.Netlink:
			t.Errorf("%s\n  nft lists %s\n--- nft\n%s+++ ours\n%s", want.text, listed[i], nft.Netlink, got.DumpSets()+got.Dump())
		}
	}
	if parseErr != nil {
		t.Errorf("nft's list does not parse: %v", parseErr)
	}
	return same
}

// rulesFromJSON reads nft's JSON listing and returns the rule of each chain.
func (c *corpus) rulesFromJSON(t *testing.T, object string) map[string]nft.Rule {
	t.Helper()
	// The comparison reports rules that do not parse as missing.
	tables, _, err := nftjson.ParsePositions("list", object)
	if len(tables) != 1 {
		t.Fatalf("%d tables in nft's JSON: %v", len(tables), err)
	}
	out := map[string]nft.Rule{}
	for _, ch := range tables[0].Chains {
		if len(ch.Rules) == 1 {
			out[ch.Name] = ch.Rules[0]
		}
	}
	return out
}

// sameRule compiles a rule that came from JSON. It must equal the committed rule, or the
// rule that came from the text, because sometimes one listing is more exact and sometimes
// the other.
func (c *corpus) sameRule(t *testing.T, made compiled, listed *compile.Rule, rule nft.Rule, scope *declared.Table) {
	t.Helper()
	got, err := compile.CompileRule(c.family, rule, scope)
	switch {
	case strings.Contains(rule.Text, "exists") && !strings.Contains(listed.Text, "exists"):
		// In JSON, every value of a test for presence is true.
	case err != nil:
		t.Errorf("%s\n  in JSON is %q\n  which does not compile: %v", made.text, rule.Text, err)
	case got.Fingerprint != listed.Fingerprint && got.Fingerprint != made.rule.Fingerprint:
		t.Errorf("%s\n  in JSON is %s\n--- text\n%s+++ JSON\n%s", made.text, rule.Text, listed.DumpSets()+listed.Dump(), got.DumpSets()+got.Dump())
	}
}

// sameSets compares the sets of a listed table with the sets of the corpus.
func (c *corpus) sameSets(t *testing.T, table nft.Table, text string) *declared.Table {
	t.Helper()
	scope, err := declared.Compile(table)
	if err != nil {
		t.Fatalf("%s: nft's list: %v", c.Name, err)
	}
	for name, set := range c.scope.Sets {
		got := scope.Sets[name]
		if got != nil && set.Size == 0 {
			// The kernel limits the size of a set to which rules add elements.
			got.Size = 0
		}
		if got != nil && changes(text, name) {
			// A file makes such a set dynamic.
			got.Flags = got.Flags&^nftset.FlagEval | set.Flags&nftset.FlagEval
		}
		if !strings.Contains(text, "\tset "+name+" {") && !strings.Contains(text, "\tmap "+name+" {") {
			// nft cannot read back a set of type ct label.
			continue
		}
		if set.DataInterval && strings.Contains(text, "typeof") {
			// nft omits the word interval of a map with typeof.
			continue
		}
		if got == nil || !got.Equal(set) {
			t.Errorf("set %s is another one in nft's list: %+v, want %+v", name, got, set)
		}
	}
	return scope
}

// changes reports whether a rule of a listing changes a set.
func changes(text, set string) bool {
	return slices.ContainsFunc([]string{"add", "update", "delete"}, func(op string) bool { return strings.Contains(text, op+" @"+set+" {") })
}

// sameAsNFT lets nft create the rules, and compares the listings.
func (c *corpus) sameAsNFT(t *testing.T, rules []compiled, text, object string) {
	t.Helper()
	texts := make([]string, len(rules))
	for i, r := range rules {
		texts[i] = r.text
	}
	ns := nfttest.New(t)
	bad := map[int]bool{}
	for {
		script, at := c.with(texts).Script(bad)
		_, err := ns.Output(script, "nft", "-f", "-")
		if err == nil {
			break
		}
		wrong := nfttest.Rejected(err, at)
		if len(wrong) == 0 {
			t.Fatal(err)
		}
		for i := range wrong {
			t.Errorf("%s\n  compiles, but nft refuses it: %v", texts[i], err)
			bad[i] = true
		}
	}
	list, err := ns.Output("", "nft", "list", "ruleset")
	if err != nil {
		// nft cannot list some rules that it stored itself, such as types of sets.
		t.Logf("nft cannot list its own rules: %v", err)
		return
	}
	ours, theirs := blocksOf(text), blocksOf(list)
	for name, want := range theirs {
		if got := ours[name]; got != want && !excused(want) {
			t.Errorf("nft lists\n%s\n  if weft created it, and\n%s\n  if nft did", got, want)
		}
	}
	a, b := objectsOf(t, object), objectsOf(t, ns.Run(t, "nft", "-j", "list", "ruleset"))
	for name, want := range b {
		if got := a[name]; !reflect.DeepEqual(got, want) && !excused(fmt.Sprint(want)) {
			t.Errorf("nft -j lists\n%v\n  if weft created it, and\n%v\n  if nft did", got, want)
		}
	}
}

// blocksOf splits a listed table into its chains and sets.
func blocksOf(text string) map[string]string {
	out := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "\t\t") && strings.HasSuffix(line, "{\n") {
			name = strings.TrimSpace(line)
		}
		out[name] += line
		if line == "\t}\n" {
			name = ""
		}
	}
	// Outside of the blocks, blank lines differ because some rules are omitted.
	delete(out, "")
	return out
}

// objectsOf returns the objects of nft's JSON by kind and name, without handles.
func objectsOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var list struct {
		Nftables []map[string]map[string]any `json:"nftables"`
	}
	nfttest.NoError(t, json.Unmarshal([]byte(text), &list))
	out := map[string]any{}
	for _, object := range list.Nftables {
		for kind, o := range object {
			delete(o, "handle")
			if kind != "metainfo" {
				out[fmt.Sprint(kind, o["chain"], o["name"])] = o
			}
		}
	}
	return out
}
