package nfttest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Ruleset is a table whose rules are to be compared with what nft(8) makes of
// them.
type Ruleset struct {
	// Family is the table's family in nft's words.
	Family string
	// Decls are the declarations of its sets and maps.
	Decls []string
	// Chains are the names of the chains that rules jump to.
	Chains []string
	// Rules are the texts of the rules.
	Rules []string
}

// errorLine finds the place of an error of nft.
var errorLine = regexp.MustCompile(`/dev/stdin:(\d+):\S* Error: `)

// Netlink returns what nft makes of each rule that it accepts, by the rule's
// index: the anonymous sets and then the expressions as "nft --debug=netlink"
// prints them, blanks apart. Nothing is committed.
func (ns *NS) Netlink(t testing.TB, r *Ruleset) map[int]string {
	t.Helper()
	Require(t, NFT)
	bad := map[int]bool{}
	// nft reports up to ten wrong rules at once and then prints nothing: leave
	// them out and try again.
	for range len(r.Rules) + 1 {
		script, lines := r.Script(bad)
		text, err := ns.Output(script, "nft", "--debug=netlink", "-c", "-f", "-")
		if err == nil {
			return splitDebug(text)
		}
		n := len(bad)
		for _, m := range errorLine.FindAllStringSubmatch(err.Error(), -1) {
			at, _ := strconv.Atoi(m[1])
			if i, ok := lines[at]; ok {
				bad[i] = true
			}
		}
		if len(bad) == n {
			t.Fatalf("nft: %v", err)
		}
	}
	return nil
}

// Script returns input for nft -f with each rule in a chain of its own, but
// those to skip; lines maps its lines to the indices of rules.
func (r *Ruleset) Script(skip map[int]bool) (script string, lines map[int]int) {
	var b strings.Builder
	lines = map[int]int{}
	line := 1
	put := func(s string) {
		b.WriteString(s)
		b.WriteByte('\n')
		line += 1 + strings.Count(s, "\n")
	}
	put("table " + r.Family + " t {")
	for _, d := range r.Decls {
		put(d)
	}
	for _, c := range r.Chains {
		put("chain " + c + " { }")
	}
	for i, text := range r.Rules {
		if skip[i] {
			continue
		}
		put(fmt.Sprintf("chain %s%d {", ruleChain, i))
		lines[line] = i
		put(text)
		put("}")
	}
	put("}")
	return b.String(), lines
}

// ruleChain and an index name the chain of a rule in a Script.
const ruleChain = "nfttest-rule-"

// splitDebug cuts nft's debugging output into that of the rules.
func splitDebug(text string) map[int]string {
	out := map[int]string{}
	var sets []string
	cur := -1
	anonymous := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
			cur = -1
		case strings.HasPrefix(line, "__set%d ") || strings.HasPrefix(line, "__map%d "):
			anonymous = true
			if len(f) > 3 {
				sets = append(sets, f[0]+" "+strings.Join(f[2:], " "))
			}
		case strings.HasPrefix(line, "\telement"):
			if anonymous {
				sets = append(sets, debugElements(line)...)
			}
		case strings.HasPrefix(line, "  [ "):
			if cur >= 0 {
				out[cur] += line + "\n"
			}
		case len(f) == 3 && strings.HasPrefix(f[2], ruleChain):
			if n, err := strconv.Atoi(strings.TrimPrefix(f[2], ruleChain)); err == nil {
				cur = n
				out[cur] = ""
				for _, s := range sets {
					out[cur] += s + "\n"
				}
			}
			sets, anonymous = nil, false
		default:
			anonymous = false
		}
	}
	return out
}

// debugElements cuts a line of elements, one blank between words.
func debugElements(line string) []string {
	var out []string
	for _, e := range strings.Split(line, "\telement") {
		if e = strings.Join(strings.Fields(e), " "); e != "" {
			out = append(out, "  element "+e)
		}
	}
	return out
}
