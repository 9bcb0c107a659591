package kernel

import (
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
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// huntRules is how many rules TestHunt makes of a corpus in one round.
const huntRules = 150

// TestHunt generates rules from pieces of the rules of the corpora, compiles them,
// commits those that compile, and lets nft list them. nft must not fail on any rule. The
// test also compares the rules with nft's compiled form and counts the differences. If
// WEFT_HUNT is a duration such as 10m, the test runs for that long with new
// rules, and prints the differences. WEFT_HUNT_SEED repeats a run.
func TestHunt(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	h := &hunt{t: t, seed: 1, corpora: readCorpora(t), seen: map[string]bool{}}
	var long time.Duration
	if text := os.Getenv("WEFT_HUNT"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("WEFT_HUNT: %v", err)
		}
		h.verbose, h.seed = true, uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("WEFT_HUNT_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("WEFT_HUNT_SEED: %v", err)
		}
		h.seed = n
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
	t.Logf("seed %d: %d rules, %d accepted by both and %d of them the same, %d rejected by both, %d by nft alone, %d by weft alone, %d crash nft, %d rejected by the kernel",
		h.seed, h.made, h.taken, h.same, h.refused, h.nftRefuses, h.weRefuse, h.crash, h.kernelRefuses)
}

// hunt is the state of TestHunt.
type hunt struct {
	t       *testing.T
	seed    uint64
	verbose bool
	rand    *rand.Rand
	corpora []*corpus
	seen    map[string]bool
	// stmts and words are the pieces of which rules are generated: statements, and the
	// tokens of all rules by their kind.
	stmts []string
	words map[scan.Kind][]string

	made, taken, same, refused, nftRefuses, weRefuse, crash, kernelRefuses int
}

// collect splits the rules of all corpora into pieces.
func (h *hunt) collect() {
	h.words = map[scan.Kind][]string{}
	known := map[string]bool{}
	for _, c := range h.corpora {
		for _, text := range c.rules {
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
	text := pick(h, c.rules)
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

// round generates rules for a corpus and tests them.
func (h *hunt) round(c *corpus) {
	var texts []string
	for range huntRules {
		text := h.rule(c)
		if key := c.family.String() + text; !h.seen[key] && !strings.ContainsAny(text, "\n;#") {
			h.seen[key] = true
			texts = append(texts, text)
		}
	}
	h.made += len(texts)
	ours := map[string]compiled{}
	for _, r := range c.compileAll(texts) {
		ours[r.text] = r
	}
	h.list(c, ours)
	theirs := c.askNFT(h.t, nfttest.New(h.t), texts)
	for _, text := range texts {
		h.compare(c, text, ours[text], theirs[text])
	}
}

// compare compares the results of nft and weft for a rule, and counts them.
func (h *hunt) compare(c *corpus, text string, ours compiled, theirs answer) {
	switch {
	case theirs.crash:
		h.crash++
		if ours.rule != nil {
			h.report("CRASH", c, text, "nft crashes on it, weft takes it")
		}
	case theirs.kernel:
		h.kernelRefuses++
	case ours.rule == nil && !theirs.ok:
		h.refused++
	case ours.rule == nil:
		h.weRefuse++
		_, err := compile.CompileRule(c.family, nft.Rule{Text: text}, c.scope)
		h.report("REFUSED", c, text, fmt.Sprintf("weft: %v\n%s", err, theirs.text))
	case !theirs.ok:
		h.nftRefuses++
		h.report("ACCEPTED", c, text, "nft: "+theirs.text+"\n"+ours.rule.DumpSets()+ours.rule.Dump())
	default:
		h.taken++
		if got := ours.rule.DumpSets() + ours.rule.Dump(); got != theirs.text {
			h.report("DIFFERS", c, text, "--- nft\n"+theirs.text+"+++ ours\n"+got)
		} else {
			h.same++
		}
	}
}

// report prints a difference if WEFT_HUNT is set.
func (h *hunt) report(what string, c *corpus, text, detail string) {
	if h.verbose {
		fmt.Printf("%s %s: %s\n%s\n", what, c.family, text, strings.TrimRight(detail, "\n"))
	}
}

// list commits the rules and lets nft list them. If nft fails, list finds the
// rule.
func (h *hunt) list(c *corpus, rules map[string]compiled) {
	list := make([]compiled, 0, len(rules))
	for _, r := range rules {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b compiled) int { return strings.Compare(a.text, b.text) })
	kept, refused := c.acceptedByKernel(h.t, list)
	for text, err := range refused {
		h.kernelRefuses++
		h.report("KERNEL", c, text, err.Error())
	}
	for _, bad := range c.unlistable(h.t, kept) {
		h.t.Errorf("seed %d: %s: %s\n  nft cannot list it: %v", h.seed, c.family, bad.text, c.tryList(h.t, []compiled{bad}))
	}
}
