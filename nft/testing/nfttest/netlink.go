package nfttest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Ruleset is a table with rules for a comparison with nft(8).
type Ruleset struct {
	Family string
	Decls  []string
	Chains []string
	Rules  []string
	// the running kernel may lack features, so only rejections by nft itself count
	Unchecked bool
}

// Answer is what nft makes of a rule.
type Answer struct {
	OK bool
	// the compiled form, as "nft --debug=netlink" prints it, with single blanks
	Netlink string
	Error   string
	// nft ends without naming an error
	Crash bool
	// nft compiles the rule, and the kernel rejects it
	Kernel bool
}

// Ask returns nft's answer to each rule by index, without a commit.
func (ns *NS) Ask(t testing.TB, r *Ruleset) map[int]Answer {
	t.Helper()
	Require(t, NFT)
	all := make([]int, len(r.Rules))
	for i := range all {
		all[i] = i
	}
	out := map[int]Answer{}
	ns.ask(t, r, all, out)
	return out
}

func (ns *NS) ask(t testing.TB, r *Ruleset, some []int, out map[int]Answer) {
	t.Helper()
	bad := map[int]bool{}
	for i := range r.Rules {
		bad[i] = !slices.Contains(some, i)
	}
	// nft reports up to ten invalid rules at once without other output
	for {
		script, lines := r.Script(bad)
		text, err := ns.Output(script, "nft", "--debug=netlink", "-c", "-f", "-")
		if err == nil || r.Unchecked && kernelError(err) {
			for i, netlink := range SplitDebug(text) {
				out[i] = Answer{OK: true, Netlink: netlink}
			}
			return
		}
		found := false
		for i, why := range Rejected(err, lines) {
			kernel := strings.HasPrefix(why, ofKernel)
			if !bad[i] && !(kernel && r.Unchecked) {
				bad[i], found = true, true
				out[i] = Answer{Error: why, Kernel: kernel}
			}
		}
		if found {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(some), func(i int) bool { return bad[i] })
		switch len(left) {
		case 0:
			t.Fatalf("nft: %v", err)
		case 1:
			out[left[0]] = Answer{Error: err.Error(), Crash: !strings.Contains(err.Error(), "Error:")}
			return
		}
		ns.ask(t, r, left[:len(left)/2], out)
		ns.ask(t, r, left[len(left)/2:], out)
		return
	}
}

// Netlink returns the compiled form of each accepted rule by index.
func (ns *NS) Netlink(t testing.TB, r *Ruleset) map[int]string {
	t.Helper()
	out := map[int]string{}
	for i, a := range ns.Ask(t, r) {
		if a.OK {
			out[i] = a.Netlink
		}
	}
	return out
}

var errorLine = regexp.MustCompile(`/dev/stdin:(\d+):\S* Error: ([^\n]*)`)

// begins nft's errors about what it has compiled
const ofKernel = "Could not process rule"

// Rejected returns what an error of nft says of each rule that it names. Lines are those of Script.
func Rejected(err error, lines map[int]int) map[int]string {
	out := map[int]string{}
	for _, m := range errorLine.FindAllStringSubmatch(err.Error(), -1) {
		at, _ := strconv.Atoi(m[1])
		if i, ok := lines[at]; ok && out[i] == "" {
			out[i] = m[2]
		}
	}
	return out
}

// kernelError reports whether only the kernel rejects rules: nft has compiled all.
func kernelError(err error) bool {
	list := errorLine.FindAllStringSubmatch(err.Error(), -1)
	for _, m := range list {
		if !strings.HasPrefix(m[2], ofKernel) {
			return false
		}
	}
	return len(list) > 0
}

// Script returns input for nft -f with each rule in its own chain, without the rules in skip. lines
// maps lines to rules.
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

// precedes the rule's index in the chain's name
const ruleChain = "nfttest-rule-"

// nft before 1.1.2 swaps single bytes; newer kernels reject it
var swappedByte = regexp.MustCompile(`^  \[ byteorder reg \d+ = (hton|ntoh)\(reg \d+, 2, 1\) \]`)

// SplitDebug splits the output of "nft --debug=netlink" by the rule's index.
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
		case swappedByte.MatchString(line):
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

func debugElements(line string) []string {
	var out []string
	for _, e := range strings.Split(line, "\telement") {
		if e = strings.Join(strings.Fields(e), " "); e != "" {
			out = append(out, "  element "+e)
		}
	}
	return out
}
