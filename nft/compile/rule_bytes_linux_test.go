package compile

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/nfttest"
)

// TestSameBytesAsNFT compares the marshalled expressions with those that nft(8)
// sends. Attributes may come in another order, and the kernel does not mind
// whether nested ones are flagged so.
func TestSameBytesAsNFT(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	rules, same := 0, 0
	for _, c := range readCorpora(t) {
		theirs := ns.Netlink(t, c.ruleset())
		bad := map[int]bool{}
		for i := range c.rules {
			if _, ok := theirs[i]; !ok {
				bad[i] = true
			}
		}
		script, _ := c.ruleset().Script(bad)
		text, err := ns.Output(script, "nft", "--debug=mnl", "-c", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		sent, sentSets := newRules(t, text), newSets(t, text)
		n := 0
		for i, rule := range c.rules {
			if bad[i] {
				continue
			}
			r, err := CompileRule(c.family, nft.Rule{Text: rule}, c)
			if err != nil {
				continue // TestSameAsNFT tells.
			}
			b, err := r.Encode(0)
			if err != nil {
				t.Fatal(err)
			}
			rules++
			want := canonicalExprs(sent[n])
			n++
			for _, a := range r.Anonymous {
				if len(sentSets) == 0 {
					t.Fatalf("%s: nft makes fewer anonymous sets", rule)
				}
				// nft stores an expression for ct proto-dst that no nft(8) can
				// read back: we leave it out.
				if got := printSet(a.Set); got != sentSets[0] && !strings.Contains(rule, "ct original proto-") {
					t.Errorf("%s\n--- nft\n%s\n+++ ours\n%s", rule, sentSets[0], got)
				}
				sentSets = sentSets[1:]
			}
			if got := canonicalExprs(b); got != want {
				t.Errorf("%s\n--- nft\n%s+++ ours\n%s", rule, want, got)
			} else {
				same++
			}
		}
	}
	t.Logf("%d rules, %d have the same bytes", rules, same)
}

// row matches a line of libmnl's message dump; the numbers may be coloured.
var row = regexp.MustCompile(`^\|\s*(?:([0-9a-f]{2}) ([0-9a-f]{2}) ([0-9a-f]{2}) ([0-9a-f]{2})|(\d{5})\|(..)\|(\d{5}))\s*\|`)

// newRules returns NFTA_RULE_EXPRESSIONS of each NEWRULE message that libmnl
// printed.
func newRules(t *testing.T, text string) [][]byte {
	t.Helper()
	var out [][]byte
	for _, b := range messages(t, text, "02566") {
		err := eachAttr(b, func(typ uint16, v []byte) error {
			if typ == 4 { // NFTA_RULE_EXPRESSIONS
				out = append(out, v)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// newSets prints the anonymous sets of the NEWSET messages that libmnl printed.
func newSets(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for _, b := range messages(t, text, "02569") {
		s := &Set{}
		err := eachAttr(b, func(typ uint16, v []byte) (err error) {
			switch typ {
			case 2:
				s.Name = string(v[:len(v)-1])
			case 3:
				s.Flags, err = attrU32(v)
			case 4:
				s.Key.ID, err = attrU32(v)
			case 5:
				s.Key.Len, err = attrU32(v)
			case 6:
				s.Data.ID, err = attrU32(v)
			case 7:
				s.Data.Len, err = attrU32(v)
			case 13:
				s.UserData = v
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.Flags&SetAnonymous != 0 {
			out = append(out, printSet(s))
		}
	}
	return out
}

func printSet(s *Set) string {
	dataLen := s.Data.Len
	if s.Data.ID == VerdictType {
		dataLen = 0
	}
	return fmt.Sprintf("%s flags %x key %x len %d data %x len %d userdata %x", s.Name, s.Flags, s.Key.ID, s.Key.Len, s.Data.ID, dataLen, s.UserData)
}

// messages returns the attributes of the messages of a type that libmnl
// printed.
func messages(t *testing.T, text, typ string) [][]byte {
	t.Helper()
	text = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(text, "")
	var out [][]byte
	for _, msg := range strings.Split(text, "| message length |")[1:] {
		if !strings.Contains(strings.SplitN(msg, "\n", 3)[1], "| "+typ+" |") {
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
		out = append(out, b)
	}
	return out
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
	_ = eachAttr(b, func(_ uint16, elem []byte) error {
		s.WriteString("  " + canonicalExpr(elem) + "\n")
		return nil
	})
	return s.String()
}

func canonicalExpr(elem []byte) string {
	name, data, err := unmarshalNamed(elem)
	if err != nil {
		return err.Error()
	}
	var attrs []string
	_ = eachAttr(data, func(typ uint16, v []byte) error {
		value := fmt.Sprintf("%x", v)
		switch {
		case name == "lookup" && typ == 4, name == "dynset" && typ == 2:
			return nil // the number of the set in the transaction
		case strings.Trim(string(v), "\x00") == "" && defaultZero[fmt.Sprint(name, typ)]:
			return nil
		case name == "dynset" && typ == 7:
			value = canonicalExpr(v)
		case name == "immediate" && typ == 2:
			value = ""
			_ = eachAttr(v, func(typ uint16, v []byte) error {
				value += fmt.Sprintf("{%d=%x}", typ, v)
				return nil
			})
		}
		attrs = append(attrs, fmt.Sprintf("%d=%s", typ, value))
		return nil
	})
	slices.Sort(attrs)
	return strings.TrimSpace(name + " " + strings.Join(attrs, " "))
}
