package nfttest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
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
	// Unchecked is true where the running kernel may lack what the rules need:
	// only what nft itself refuses counts then.
	Unchecked bool
}

// errorLine finds the place of an error of nft.
var errorLine = regexp.MustCompile(`/dev/stdin:(\d+):\S* Error: (Could not process rule)?`)

// Netlink returns what nft makes of each rule that it accepts, by the rule's
// index: the anonymous sets and then the expressions as "nft --debug=netlink"
// prints them, blanks apart. Nothing is committed. A rule at which nft aborts counts
// as refused.
func (ns *NS) Netlink(t testing.TB, r *Ruleset) map[int]string {
	t.Helper()
	Require(t, NFT)
	all := make([]int, len(r.Rules))
	for i := range all {
		all[i] = i
	}
	return ns.netlink(t, r, all)
}

// netlink is Netlink for some of the rules.
func (ns *NS) netlink(t testing.TB, r *Ruleset, some []int) map[int]string {
	t.Helper()
	bad := map[int]bool{}
	for i := range r.Rules {
		bad[i] = !slices.Contains(some, i)
	}
	// nft reports up to ten wrong rules at once and then prints nothing: leave
	// them out and try again.
	for {
		script, lines := r.Script(bad)
		text, err := ns.Output(script, "nft", "--debug=netlink", "-c", "-f", "-")
		if err == nil || r.Unchecked && kernelError(err) {
			return SplitDebug(text)
		}
		found := false
		for _, m := range errorLine.FindAllStringSubmatch(err.Error(), -1) {
			if r.Unchecked && m[2] != "" {
				continue
			}
			at, _ := strconv.Atoi(m[1])
			if i, ok := lines[at]; ok && !bad[i] {
				bad[i], found = true, true
			}
		}
		if found {
			continue
		}
		// It aborted, and does not say where.
		left := slices.DeleteFunc(slices.Clone(some), func(i int) bool { return bad[i] })
		switch len(left) {
		case 0:
			t.Fatalf("nft: %v", err)
		case 1:
			return nil
		}
		out := ns.netlink(t, r, left[:len(left)/2])
		if out == nil {
			out = map[int]string{}
		}
		maps.Copy(out, ns.netlink(t, r, left[len(left)/2:]))
		return out
	}
}

// kernelError reports whether an error of nft says only what the kernel has
// refused; nft has compiled all rules then.
func kernelError(err error) bool {
	list := errorLine.FindAllStringSubmatch(err.Error(), -1)
	for _, m := range list {
		if m[2] == "" {
			return false
		}
	}
	return len(list) > 0
}

// Messages returns what nft sends to the kernel for a ruleset that it accepts, as
// "nft --debug=mnl" prints it. Nothing is committed.
func (ns *NS) Messages(t testing.TB, r *Ruleset, skip map[int]bool) string {
	t.Helper()
	script, _ := r.Script(skip)
	text, err := ns.Output(script, "nft", "--debug=mnl", "-c", "-f", "-")
	if err != nil && (!r.Unchecked || !kernelError(err)) {
		t.Fatal(err)
	}
	return text
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

// SplitDebug cuts what "nft --debug=netlink" prints for a Script into what it
// makes of each rule, by the rule's index.
func SplitDebug(text string) map[int]string {
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
		case strings.HasPrefix(line, "__") && strings.HasSuffix(f[0], "%d"):
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
