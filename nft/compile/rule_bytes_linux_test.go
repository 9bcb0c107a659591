package compile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	nftobject "github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestSameBytesAsNFT compares the marshalled expressions with those that nft(8)
// sends. Attributes may come in another order, and the kernel does not mind
// whether nested ones are flagged so. TestSameAsNFT shows that nft accepts the rules that
// we accept, and no others.
func TestSameBytesAsNFT(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	rules, same := 0, 0
	for _, c := range readCorpora(t) {
		compiled, bad := make([]*Rule, len(c.Rules)), map[int]bool{}
		for i, rule := range c.Rules {
			r, err := CompileRule(c.family, nft.Rule{Text: rule}, c)
			compiled[i], bad[i] = r, err != nil
		}
		sent := sentRules(t, ns.Messages(t, &c.Ruleset, bad))
		for i, rule := range c.Rules {
			if bad[i] {
				continue
			}
			want := sent[0]
			sent = sent[1:]
			r := compiled[i]
			b := nfttest.Must(r.Encode(0))
			rules++
			if len(r.Anonymous) != len(want.sets) {
				t.Errorf("%s: %d anonymous sets, nft makes %d", rule, len(r.Anonymous), len(want.sets))
				continue
			}
			for i, a := range r.Anonymous {
				// nft stores an expression for ct proto-dst that no nft(8) can
				// read back: we leave it out.
				if got := printSet(a.Set); got != want.sets[i] && !strings.Contains(rule, "proto-") {
					t.Errorf("%s\n--- nft\n%s\n+++ ours\n%s", rule, want.sets[i], got)
				}
			}
			want.exprs = swappedByte.ReplaceAllString(want.exprs, "")
			switch got := canonicalExprs(b); {
			case got == want.exprs:
				same++
			case !mergedAcross(c, rule, got, want.exprs):
				t.Errorf("%s\n--- nft\n%s+++ ours\n%s", rule, want.exprs, got)
			}
		}
	}
	t.Logf("%d rules, %d have the same bytes", rules, same)
}

// swappedByte matches the change of a single byte's order, which nft before 1.1.2 sends and
// newer kernels refuse.
var swappedByte = regexp.MustCompile(`(?m)^\s*byteorder 1=[0-9a-f]+ 2=[0-9a-f]+ 3=[0-9a-f]+ 4=00000001 5=00000002\n`)

// sentRule is a rule that nft(8) sends, with its anonymous sets, printed.
type sentRule struct {
	exprs string
	sets  []string
}

// sentRules returns the rules of messages. Sets come before their rule.
func sentRules(t *testing.T, messages []nfttest.Message) []sentRule {
	t.Helper()
	var out []sentRule
	var cur sentRule
	for _, m := range messages {
		switch m.Type {
		case unix.NFT_MSG_NEWSET:
			if s := sentSet(t, m.Attrs); s.Flags&set.FlagAnonymous != 0 {
				cur.sets = append(cur.sets, printSet(s))
			}
		case unix.NFT_MSG_NEWRULE:
			v, ok := attr.Find(m.Attrs, unix.NFTA_RULE_EXPRESSIONS)
			if !ok {
				continue
			}
			cur.exprs = canonicalExprs(v.Bytes())
			out = append(out, cur)
			cur = sentRule{}
		}
	}
	return out
}

// sentSet reads the attributes of a set.
func sentSet(t *testing.T, attrs []byte) *set.Set {
	t.Helper()
	s := &set.Set{}
	var object uint32
	nfttest.NoError(t, attr.Fields{
		attr.Always(unix.NFTA_SET_NAME, &s.Name), attr.Always(unix.NFTA_SET_FLAGS, &s.Flags), attr.Always(unix.NFTA_SET_OBJ_TYPE, &object),
		attr.Always(unix.NFTA_SET_KEY_TYPE, &s.Key.ID), attr.Always(unix.NFTA_SET_KEY_LEN, &s.Key.Len),
		attr.Always(unix.NFTA_SET_DATA_TYPE, &s.Data.ID), attr.Always(unix.NFTA_SET_DATA_LEN, &s.Data.Len), attr.Always(unix.NFTA_SET_USERDATA, &s.UserData),
	}.Read(attrs))
	s.Object = nftobject.KindOf(object)
	return s
}

func printSet(s *set.Set) string {
	if s.Object != "" {
		return fmt.Sprintf("%s flags %x key %x len %d object %s userdata %x", s.Name, s.Flags, s.Key.ID, s.Key.Len, s.Object, s.UserData)
	}
	dataLen := s.Data.Len
	if s.Data.ID == set.VerdictType {
		dataLen = 0
	}
	return fmt.Sprintf("%s flags %x key %x len %d data %x len %d userdata %x", s.Name, s.Flags, s.Key.ID, s.Key.Len, s.Data.ID, dataLen, s.UserData)
}

// defaultZero are the attributes that mean 0 where they are missing; nft and we
// leave out different ones.
var defaultZero = map[string]bool{
	"bitwise6": true, // NFTA_BITWISE_OP
	"counter1": true, "counter2": true, "limit3": true,
}

// canonicalExprs prints expressions with their attributes in order of type.
func canonicalExprs(b []byte) string {
	var s strings.Builder
	for r := attr.NewReader(b); r.Next(); {
		s.WriteString("  " + canonicalExpr(r.Bytes()) + "\n")
	}
	return s.String()
}

func canonicalExpr(elem []byte) string {
	name, data, err := expr.Split(elem)
	if err != nil {
		return err.Error()
	}
	var attrs []string
	for r := attr.NewReader(data); r.Next(); {
		typ, v := r.Type(), r.Bytes()
		value := fmt.Sprintf("%x", v)
		switch {
		case name == "lookup" && typ == 4, name == "dynset" && typ == 2, name == "objref" && typ == 5:
			continue // the number of the set in the transaction
		case strings.Trim(string(v), "\x00") == "" && defaultZero[fmt.Sprint(name, typ)]:
			continue
		case name == "dynset" && typ == 7:
			value = canonicalExpr(v)
		case name == "dynset" && typ == 10: // NFTA_DYNSET_EXPRESSIONS
			value = canonicalExprs(v)
		case name == "immediate" && typ == 2:
			value = ""
			for in := r.Nested(); in.Next(); {
				value += fmt.Sprintf("{%d=%x}", in.Type(), in.Bytes())
			}
		}
		attrs = append(attrs, fmt.Sprintf("%d=%s", typ, value))
	}
	slices.Sort(attrs)
	return strings.TrimSpace(name + " " + strings.Join(attrs, " "))
}

// TestSameAsNFT compiles the corpora and compares the expressions and the
// anonymous sets with those that nft(8) makes from the same text. What nft
// refuses must be refused.
func TestSameAsNFT(t *testing.T) {
	accepted, same, separated, refused, alike := 0, 0, 0, 0, 0
	var mu sync.Mutex // of the numbers
	compare := func(t *testing.T, c *corpus) {
		theirs := nfttest.New(t).Netlink(t, &c.Ruleset)
		mu.Lock()
		defer mu.Unlock()
		for i, text := range c.Rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			want, ok := theirs[i]
			switch {
			case ok && err != nil:
				accepted++
				t.Errorf("%s\n  nft accepts it, we do not: %v", text, err)
			case ok:
				accepted++
				switch got := rule.DumpSets() + rule.Dump(); {
				case got == want:
					same++
				case mergedAcross(c, text, got, want):
					separated++
				default:
					t.Errorf("%s\n--- nft\n%s+++ ours\n%s", text, want, got)
				}
			case err == nil:
				refused++
				t.Errorf("%s\n  nft refuses it, we do not:\n%s", text, rule.DumpSets()+rule.Dump())
			default:
				refused++
				alike++
			}
		}
	}
	t.Run("corpora", func(t *testing.T) {
		for _, c := range readCorpora(t) {
			t.Run(c.Name, func(t *testing.T) { t.Parallel(); compare(t, c) })
		}
	})
	t.Logf("nft accepts %d rules, %d are identical, in %d it merges comparisons that a statement separates; it refuses %d, we refuse %d of them", accepted, same, separated, refused, alike)
	if separated == 0 {
		t.Error("no rule shows how nft merges comparisons: the corpora want one")
	}
}

// TestPrintedForNFT gives nft the canonical text of the rules: it must make the
// same of it.
func TestPrintedForNFT(t *testing.T) {
	ns := nfttest.New(t)
	rules := 0
	for _, c := range readCorpora(t) {
		printed := *c
		printed.Rules = nil
		var want []string
		for _, text := range c.Rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			printed.Rules = append(printed.Rules, rule.Text)
			want = append(want, rule.DumpSets()+rule.Dump())
		}
		got := ns.Netlink(t, &printed.Ruleset)
		for i, text := range printed.Rules {
			rules++
			if got[i] != want[i] && !mergedAcross(c, text, want[i], got[i]) {
				t.Errorf("%s: nft makes another rule of the canonical text\n--- nft\n%s+++ want\n%s", text, got[i], want[i])
			}
		}
	}
	t.Logf("nft reads the canonical text of %d rules", rules)
}
