package compile

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
		compiled, bad := make([]*Rule, len(c.rules)), map[int]bool{}
		for i, rule := range c.rules {
			r, err := CompileRule(c.family, nft.Rule{Text: rule}, c)
			compiled[i], bad[i] = r, err != nil
		}
		text := ns.Messages(t, c.ruleset(), bad)
		sent := sentRules(t, text)
		for i, rule := range c.rules {
			if bad[i] {
				continue
			}
			want := sent[0]
			sent = sent[1:]
			r := compiled[i]
			b, err := r.Encode(0)
			if err != nil {
				t.Fatal(err)
			}
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

// row matches a line of libmnl's message dump; the numbers may be coloured.
var row = regexp.MustCompile(`^\|\s*(?:([0-9a-f]{2}) ([0-9a-f]{2}) ([0-9a-f]{2}) ([0-9a-f]{2})|(\d{5})\|(..)\|(\d{5}))\s*\|`)

// sentRule is a rule that nft(8) sends, with its anonymous sets, printed.
type sentRule struct {
	exprs string
	sets  []string
}

// The messages of nfnetlink that sentRules reads, as libmnl prints them.
const (
	newRuleMessage = "02566"
	newSetMessage  = "02569"
)

// sentRules returns the rules of the messages that libmnl printed. Sets come before
// their rule.
func sentRules(t *testing.T, text string) []sentRule {
	t.Helper()
	var out []sentRule
	var cur sentRule
	for _, m := range messages(t, text) {
		if m.typ == newSetMessage {
			if s := sentSet(t, m.attrs); s.Flags&set.FlagAnonymous != 0 {
				cur.sets = append(cur.sets, printSet(s))
			}
			continue
		}
		if v, ok := attr.Find(m.attrs, unix.NFTA_RULE_EXPRESSIONS); ok {
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
	err := attr.Fields{
		attr.Always(unix.NFTA_SET_NAME, &s.Name), attr.Always(unix.NFTA_SET_FLAGS, &s.Flags), attr.Always(unix.NFTA_SET_OBJ_TYPE, &object),
		attr.Always(unix.NFTA_SET_KEY_TYPE, &s.Key.ID), attr.Always(unix.NFTA_SET_KEY_LEN, &s.Key.Len),
		attr.Always(unix.NFTA_SET_DATA_TYPE, &s.Data.ID), attr.Always(unix.NFTA_SET_DATA_LEN, &s.Data.Len), attr.Always(unix.NFTA_SET_USERDATA, &s.UserData),
	}.Read(attrs)
	if err != nil {
		t.Fatal(err)
	}
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

// message is a message of nfnetlink: its type as libmnl prints it, and its attributes.
type message struct {
	typ   string
	attrs []byte
}

// messages returns the messages about rules and sets that libmnl printed.
func messages(t *testing.T, text string) []message {
	t.Helper()
	text = withoutColours(text)
	var out []message
	for _, msg := range strings.Split(text, "| message length |")[1:] {
		head, typ := strings.SplitN(msg, "\n", 3)[1], newRuleMessage
		if !strings.Contains(head, "| "+typ+" |") {
			typ = newSetMessage
		}
		if !strings.Contains(head, "| "+typ+" |") {
			continue
		}
		_, body, _ := strings.Cut(msg, "|  extra header  |\n")
		var b []byte
		for line := range strings.Lines(body) {
			m := row.FindStringSubmatch(line)
			switch {
			case m == nil:
			case m[1] != "":
				d, err := hex.DecodeString(m[1] + m[2] + m[3] + m[4])
				if err != nil {
					t.Fatal(err)
				}
				b = append(b, d...)
			default:
				n, _ := strconv.Atoi(m[5])
				typ, _ := strconv.Atoi(m[7])
				b = append(b, byte(n), byte(n>>8), byte(typ), byte(typ>>8))
			}
		}
		out = append(out, message{typ, b})
	}
	return out
}

// withoutColours removes the escape sequences of a terminal's colours. The text is so long
// that a regular expression takes most of the test's time.
func withoutColours(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	plain, rest, found := strings.Cut(text, "\x1b[")
	for b.WriteString(plain); found; b.WriteString(plain) {
		_, rest, _ = strings.Cut(rest, "m")
		plain, rest, found = strings.Cut(rest, "\x1b[")
	}
	return b.String()
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
