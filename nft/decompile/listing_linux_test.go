package decompile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// inKernel is a table of the kernel. It implements Scope.
type inKernel struct {
	reader  *kernel.Reader
	program *kernel.Program
}

func (k inKernel) Set(name string) (*set.Set, bool) {
	i := slices.IndexFunc(k.program.Sets, func(s kernel.ProgramSet) bool { return s.Decl.Name == name && s.Err == nil })
	if i < 0 {
		return nil, false
	}
	return k.program.Sets[i].Decl, true
}

func (k inKernel) Elements(s *set.Set) ([]set.Element, error) {
	return k.reader.Elements(k.program.ID, s)
}

// comparison counts the kernel's rules: all, with nft's text, without text, and with another text.
type comparison struct {
	rules, same int
	fell, other tally
}

// compare lists the ruleset of a namespace, and decompiles its rules.
func (c *comparison) compare(t testing.TB, ns *nfttest.NS, listing string) {
	t.Helper()
	reader := nfttest.Must(kernel.OpenReader(kernel.Config{NetNS: ns.FD()}))
	defer func() { _ = reader.Close() }()
	programs := nfttest.Must(reader.Programs())
	listed := rulesOf(listing)
	for i := range programs {
		p := &programs[i]
		for _, chain := range p.Chains {
			rules := nfttest.Must(reader.Rules(p.ID, chain.Name))
			for _, r := range rules {
				want := listed[fmt.Sprintf("%s %d", p.ID, r.Handle)]
				if want == "" {
					t.Errorf("nft lists no rule %d of table %s", r.Handle, p.ID)
				}
				c.rules++
				tree, err := Rule(p.ID.Family, r.Exprs, inKernel{reader, p})
				if err != nil {
					c.fell[reason(err)] = append(c.fell[reason(err)], want+"\n\t\t"+err.Error())
					continue
				}
				tree.Comment = r.Info.Comment
				if got := syntax.Print(tree); got == want {
					c.same++
				} else {
					c.other[""] = append(c.other[""], want+"\n\t\t"+got)
				}
			}
		}
	}
}

// rulesOf returns the rules of a listing with handles, by table and handle.
func rulesOf(listing string) map[string]string {
	out, table, rule := map[string]string{}, "", ""
	for line := range strings.Lines(listing) {
		words := strings.Fields(line)
		switch {
		case len(words) > 2 && words[0] == "table":
			table, rule = words[1]+" "+words[2], ""
			continue
		case len(words) > 0 && strings.HasSuffix(line, ";\n"):
			rule = ""
			continue
		}
		rule = strings.TrimSpace(rule + " " + strings.Join(words, " "))
		if text, handle, ok := strings.Cut(rule, " # handle "); ok {
			out[table+" "+handle] = text
			rule = ""
		}
	}
	return out
}

// TestListing loads the rules of every corpus in the tree with nft, decompiles what the kernel has, and compares
// the text with what nft lists without counts (nft -s list ruleset). It prints the shares, see TestRoundTrip.
func TestListing(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	c := &comparison{fell: tally{}, other: tally{}}
	for _, corpus := range nfttest.ReadCorpora(t, root+"/nft/compile/testdata/corpus") {
		one := newCorpus(t, corpus)
		corpus.Rules = slices.DeleteFunc(slices.Clone(corpus.Rules), func(text string) bool {
			_, err := compile.CompileRule(one.family, nft.Rule{Text: text}, one)
			return err != nil
		})
		c.load(t, &corpus.Ruleset, map[int]bool{})
	}
	files, err := filepath.Glob(root + "/nft/*/testdata/*/*.nft")
	more, err2 := filepath.Glob(root + "/frontends/services/render/testdata/*.nft")
	if err != nil || err2 != nil || len(files) < 20 {
		t.Fatalf("%d files, %v, %v", len(files), err, err2)
	}
	loaded := 0
	for _, f := range append(files, more...) {
		text := nfttest.Must(os.ReadFile(f))
		ns := nfttest.New(t)
		if _, err := ns.Output(string(text), "nft", "-f", "-"); err != nil {
			t.Logf("%s: not loaded: %.120s", f, err)
			continue
		}
		loaded++
		c.compare(t, ns, ns.Run(t, "nft", "-s", "-a", "list", "ruleset"))
	}
	n := c.fell.count()
	t.Logf("%d rules in the kernel, %d files: %d fall back to a handle (%.1f %%), %d are listed by nft with the same words (%.1f %%)",
		c.rules, loaded, n, 100*float64(n)/float64(c.rules), c.same, 100*float64(c.same)/float64(c.rules))
	c.fell.log(t)
	c.other.log(t)
	if c.rules < 10_000 || n > c.rules/50 || c.same < c.rules*8/10 {
		t.Errorf("%d of %d rules fall back to a handle and %d are equal, want 2 %% at most and 80 %% at least of 10,000 rules", n, c.rules, c.same)
	}
}

// TestIptables decompiles what iptables-nft makes of its stock rulesets. nft translates its extensions, or lists them as
// comments; here they have their names.
func TestIptables(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	files, err := filepath.Glob(root + "/nft/eval/testdata/stock/*.iptables")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	c := &comparison{fell: tally{}, other: tally{}}
	for _, f := range files {
		text := nfttest.Must(os.ReadFile(f))
		ns := nfttest.New(t)
		nfttest.Must(ns.Output(string(text), "iptables-nft-restore"))
		c.compare(t, ns, ns.Run(t, "nft", "-s", "-a", "list", "ruleset"))
	}
	fell := c.fell.count()
	t.Logf("%d rules: %d fall back to a handle, %d are listed by nft with the same words", c.rules, fell, c.same)
	c.fell.log(t)
	c.other.log(t)
	if c.rules < 50 || fell > c.rules/20 {
		t.Errorf("%d of %d rules fall back to a handle, want a twentieth at most of 50", fell, c.rules)
	}
}

// load loads rules of a corpus and compares them. Those that nft or the kernel rejects are left out; if nft crashes,
// it gets one half at a time.
func (c *comparison) load(t *testing.T, r *nfttest.Ruleset, skip map[int]bool) {
	t.Helper()
	for len(skip) < len(r.Rules) {
		ns := nfttest.New(t)
		script, lines := r.Script(skip)
		_, err := ns.Output(script, "nft", "-f", "-")
		if err == nil {
			var listing string
			if listing, err = ns.Output("", "nft", "-s", "-a", "list", "ruleset"); err == nil {
				c.compare(t, ns, listing)
				return
			}
		}
		rejected := nfttest.Rejected(err, lines)
		for i := range rejected {
			skip[i] = true
		}
		if len(rejected) > 0 {
			continue
		}
		var left []string
		for i, text := range r.Rules {
			if !skip[i] {
				left = append(left, text)
			}
		}
		if len(left) < 2 {
			return
		}
		for _, half := range [][]string{left[:len(left)/2], left[len(left)/2:]} {
			one := *r
			one.Rules = half
			c.load(t, &one, map[int]bool{})
		}
		return
	}
}
