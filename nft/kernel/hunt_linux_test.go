package kernel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// huntRules is how many rules TestHunt makes of a corpus in one round.
const huntRules = 150

// TestHunt generates rules from pieces of the rules of the corpora, compiles them,
// commits those that compile, and lets nft list them. nft must not fail on any rule. If
// WEFT_HUNT is a duration such as 10m, the test runs for that long with new
// rules. WEFT_HUNT_SEED repeats a run.
func TestHunt(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	h := &hunt{t: t, seed: 1, corpora: readCorpora(t), seen: map[string]bool{}}
	var long time.Duration
	if text := os.Getenv("WEFT_HUNT"); text != "" {
		long, h.seed = nfttest.Must(time.ParseDuration(text)), uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("WEFT_HUNT_SEED"); text != "" {
		h.seed = nfttest.Must(strconv.ParseUint(text, 10, 64))
	}
	h.rand = rand.New(rand.NewPCG(h.seed, 0))
	h.collect()
	deadline := time.Now().Add(long)
	for rounds := 0; rounds == 0 || time.Now().Before(deadline); rounds++ {
		for _, c := range h.corpora {
			h.round(c)
			if rounds > 0 && time.Now().After(deadline) {
				break
			}
		}
	}
	t.Logf("seed %d: %d rules, %d compile, %d of them are rejected by the kernel", h.seed, h.made, h.compiled, h.refused)
}

// hunt is the state of TestHunt.
type hunt struct {
	t       *testing.T
	seed    uint64
	rand    *rand.Rand
	corpora []*corpus
	seen    map[string]bool
	// stmts and words are the pieces of which rules are generated: statements, and the
	// tokens of all rules by their kind.
	stmts []string
	words map[scan.Kind][]string

	made, compiled, refused int
}

// collect splits the rules of all corpora into pieces.
func (h *hunt) collect() {
	h.words = map[scan.Kind][]string{}
	known := map[string]bool{}
	for _, c := range h.corpora {
		for _, text := range c.Rules {
			if rule, err := syntax.ParseRule(c.family, text); err == nil {
				for _, s := range rule.Stmts {
					if s := syntax.Print(&syntax.Rule{Stmts: []syntax.Stmt{s}}); !known[s] {
						known[s] = true
						h.stmts = append(h.stmts, s)
					}
				}
			}
			for _, tok := range tokensOf(text) {
				word := text[tok.Offset:tok.End]
				if !known["\x00"+word] {
					known["\x00"+word] = true
					h.words[tok.Kind] = append(h.words[tok.Kind], word)
				}
			}
		}
	}
	h.words[scan.Number] = append(h.words[scan.Number], "0", "1", "2", "7", "8", "31", "32", "63", "64", "127", "128", "255", "256",
		"4095", "65535", "65536", "0xffffffff", "0x100000000", "18446744073709551615")
	h.words[scan.Punct] = append(h.words[scan.Punct], "!=", "==", "<", ">", "<=", ">=", "!", "&", "|", "^", "<<", ">>", ".", "-", "/", ",")
}

// tokensOf returns the tokens of a rule up to the first illegal one.
func tokensOf(text string) []scan.Token {
	var out []scan.Token
	sc := scan.New(text)
	for {
		tok := sc.Next()
		if tok.Kind == scan.Illegal || tok.Kind == scan.EOF {
			return out
		}
		out = append(out, tok)
	}
}

// pick returns a random item of the list.
func pick[T any](h *hunt, list []T) T { return list[h.rand.IntN(len(list))] }

// rule generates a rule.
func (h *hunt) rule(c *corpus) string {
	text := pick(h, c.Rules)
	switch h.rand.IntN(4) {
	case 0:
		text = pick(h, h.stmts) + " " + text
	case 1:
		text = pick(h, h.stmts) + " " + pick(h, h.stmts)
	}
	for range h.rand.IntN(3) {
		text = h.mutate(text)
	}
	return text
}

// mutate changes a token: another of its kind, none, or one more.
func (h *hunt) mutate(text string) string {
	tokens := tokensOf(text)
	if len(tokens) == 0 {
		return text
	}
	tok := pick(h, tokens)
	switch h.rand.IntN(8) {
	case 0:
		return text[:tok.Offset] + text[tok.End:]
	case 1:
		return text[:tok.End] + " " + pick(h, h.words[scan.Punct]) + " " + pick(h, h.words[scan.Number]) + " " + text[tok.End:]
	case 2:
		kinds := []scan.Kind{scan.Ident, scan.Number, scan.Addr, scan.Punct}
		return text[:tok.Offset] + pick(h, h.words[pick(h, kinds)]) + text[tok.End:]
	case 3:
		other := pick(h, tokens)
		return text[:tok.Offset] + text[other.Offset:other.End] + text[tok.End:]
	default:
		if words := h.words[tok.Kind]; len(words) > 0 {
			return text[:tok.Offset] + pick(h, words) + text[tok.End:]
		}
		return text
	}
}

// round generates rules for a corpus, commits them, and lets nft list them.
func (h *hunt) round(c *corpus) {
	var texts []string
	for range huntRules {
		text := h.rule(c)
		if key := c.family.String() + text; !h.seen[key] && !strings.ContainsAny(text, "\n;#") {
			h.seen[key] = true
			texts = append(texts, text)
		}
	}
	ours := c.compileAll(texts)
	kept, refused := c.acceptedByKernel(h.t, ours)
	h.made, h.compiled, h.refused = h.made+len(texts), h.compiled+len(ours), h.refused+len(refused)
	for _, bad := range c.unlistable(h.t, kept) {
		h.t.Errorf("seed %d: %s: %s\n  nft cannot list it: %v", h.seed, c.family, bad.text, c.tryList(h.t, []compiled{bad}))
	}
}

// corpus is a file of ../compile/testdata/corpus in one of its families.
type corpus struct {
	nfttest.Corpus
	family nft.Family
	scope  *declared.Table
}

// readCorpora reads all corpora of package compile.
func readCorpora(t testing.TB) []*corpus {
	t.Helper()
	var out []*corpus
	for _, c := range nfttest.ReadCorpora(t, "../compile/testdata/corpus") {
		family := nfttest.Must(nft.ParseFamily(c.Family))
		c.Decls = slices.DeleteFunc(slices.Clone(c.Decls), func(decl string) bool { return unusable(family, decl) })
		scope := declared.Parse("table " + c.Family + " t {\n" + strings.Join(c.Decls, "\n") + "\n}\n")[0]
		out = append(out, &corpus{c, family, scope})
	}
	return out
}

// unusable reports whether a declaration is of an object that the family does not
// support: a corpus has one list of objects for several families.
func unusable(family nft.Family, decl string) bool {
	tables, err := ruleset.Parse("", "table "+family.String()+" t {\n"+decl+"\n}\n")
	if err != nil || len(tables[0].Objects) == 0 {
		return false
	}
	_, err = object.Compile(family, &tables[0].Objects[0])
	return err != nil
}

// with returns the corpus with other rules for nft.
func (c *corpus) with(rules []string) *nfttest.Ruleset {
	return &nfttest.Ruleset{Family: c.Family, Decls: c.Decls, Chains: c.Chains, Rules: rules}
}

// ask returns nft's answer to each rule.
func (c *corpus) ask(t testing.TB, rules []string) map[string]nfttest.Answer {
	t.Helper()
	out := map[string]nfttest.Answer{}
	for i, a := range nfttest.New(t).Ask(t, c.with(rules)) {
		out[rules[i]] = a
	}
	return out
}

// compiled is a rule of a corpus, with its text as given.
type compiled struct {
	text string
	rule *compile.Rule
}

// compileAll returns the rules that compile.
func (c *corpus) compileAll(rules []string) []compiled {
	var out []compiled
	for _, text := range rules {
		if rule, err := compile.CompileRule(c.family, nft.Rule{Text: text}, c.scope); err == nil {
			out = append(out, compiled{text, rule})
		}
	}
	return out
}

// chainOf returns the chain of rule number i. nfttest.Ruleset uses the same name.
func chainOf(i int) string { return fmt.Sprintf("nfttest-rule-%d", i) }

// ops returns the ops that create the table of the corpus with these rules, each in
// a chain of its own.
func (c *corpus) ops(rules []compiled) []Op {
	id := nft.TableID{Family: c.family, Name: "t"}
	ops := append(opsOfTable(c.scope), AddChain{Table: id, Chain: chain("a")}, AddChain{Table: id, Chain: chain("b")})
	for i, r := range rules {
		ops = append(ops, AddChain{Table: id, Chain: chain(chainOf(i))}, AddRule{Table: id, Chain: chainOf(i), Rule: r.rule, Handle: &Handle{}})
	}
	return ops
}

// commitRules commits a table with the rules. It omits the rules that the kernel
// rejects, and returns them with the kernel's error.
func (c *corpus) commitRules(t testing.TB, conn *Conn, rules []compiled) (kept []compiled, refused map[string]error) {
	t.Helper()
	refused = map[string]error{}
	for {
		_, err := conn.Commit(c.ops(rules))
		if err == nil {
			return rules, refused
		}
		bad := map[*compile.Rule]bool{}
		if batch := (*BatchError)(nil); errors.As(err, &batch) {
			for _, e := range append([]*BatchError{batch}, batch.Errors...) {
				if op, ok := e.Op.(AddRule); ok {
					bad[op.Rule] = true
				}
			}
		}
		if len(bad) == 0 {
			t.Fatalf("%s: %+v", c.Name, err)
		}
		var rest []compiled
		for _, r := range rules {
			if bad[r.rule] {
				refused[r.text] = err
			} else {
				rest = append(rest, r)
			}
		}
		rules = rest
	}
}

// acceptedByKernel commits the rules in a namespace of their own. It returns which of them
// the kernel accepts, and the errors for the others.
func (c *corpus) acceptedByKernel(t testing.TB, rules []compiled) (kept []compiled, refused map[string]error) {
	t.Helper()
	conn := open(t, nfttest.New(t), Config{NoOwner: true})
	return c.commitRules(t, conn, rules)
}

// tryList commits rules that the kernel accepts in a namespace of their own, and lets
// nft list them.
func (c *corpus) tryList(t testing.TB, rules []compiled) error {
	t.Helper()
	ns := nfttest.New(t)
	conn := open(t, ns, Config{NoOwner: true})
	commit(t, conn, c.ops(rules)...)
	if _, err := ns.Output("", "nft", "list", "ruleset"); err != nil {
		return err
	}
	_, err := ns.Output("", "nft", "-j", "list", "ruleset")
	return err
}

// unlistable returns the rules that nft cannot list.
func (c *corpus) unlistable(t testing.TB, rules []compiled) []compiled {
	t.Helper()
	switch {
	case len(rules) == 0 || c.tryList(t, rules) == nil:
		return nil
	case len(rules) == 1:
		return rules
	}
	half := len(rules) / 2
	return append(c.unlistable(t, rules[:half]), c.unlistable(t, rules[half:])...)
}
