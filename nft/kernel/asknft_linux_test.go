package kernel

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// answer is the result of nft for a rule: its compiled form, or the error.
type answer struct {
	ok, crash bool
	// kernel is true if nft accepts the rule and the kernel rejects it.
	kernel bool
	text   string
}

// askNFT lets nft compile the rules. If nft crashes, it gets one half at a time.
func (c *corpus) askNFT(t testing.TB, ns *nfttest.NS, texts []string) map[string]answer {
	t.Helper()
	out := map[string]answer{}
	bad := map[int]bool{}
	for len(bad) < len(texts) {
		script, at := c.ruleset(texts).Script(bad)
		text, err := ns.Output(script, "nft", "--debug=netlink", "-c", "-f", "-")
		if err == nil {
			for i, text := range nfttest.SplitDebug(text) {
				out[texts[i]] = answer{ok: true, text: text}
			}
			return out
		}
		wrong := wrongLines(err.Error(), at)
		for _, i := range wrong {
			bad[i] = true
			why := lineError(err.Error(), at, i)
			out[texts[i]] = answer{kernel: strings.HasPrefix(why, "Could not process rule"), text: why}
		}
		if len(wrong) > 0 {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { _, ok := out[text]; return ok })
		if len(rest) == 1 {
			out[rest[0]] = answer{crash: !strings.Contains(err.Error(), "Error:"), text: err.Error()}
			return out
		}
		for _, half := range [][]string{rest[:len(rest)/2], rest[len(rest)/2:]} {
			for text, a := range c.askNFT(t, ns, half) {
				out[text] = a
			}
		}
		return out
	}
	return out
}

// errorLine matches the position of an error of nft.
var errorLine = regexp.MustCompile(`/dev/stdin:(\d+):\S* Error: ([^\n]*)`)

// wrongLines returns the rules that an error of nft names. at maps lines to
// rules.
func wrongLines(text string, at map[int]int) []int {
	var out []int
	for _, m := range errorLine.FindAllStringSubmatch(text, -1) {
		line, _ := strconv.Atoi(m[1])
		if i, ok := at[line]; ok && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// lineError returns nft's error about a rule.
func lineError(text string, at map[int]int, rule int) string {
	for _, m := range errorLine.FindAllStringSubmatch(text, -1) {
		if line, _ := strconv.Atoi(m[1]); at[line] == rule {
			return m[2]
		}
	}
	return ""
}
