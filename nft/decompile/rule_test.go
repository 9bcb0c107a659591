package decompile

import (
	"errors"
	"maps"
	"testing"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// extension returns a match or target of iptables.
func extension(kind, name, info string) *expr.Unknown {
	data := attr.AppendString(nil, unix.NFTA_MATCH_NAME, name)
	data = attr.AppendUint32BE(data, unix.NFTA_MATCH_REV, 0)
	return &expr.Unknown{Name: kind, Data: attr.AppendBytes(data, unix.NFTA_MATCH_INFO, info)}
}

// library wraps expressions of google/nftables.
func library(list ...google.Any) (out []expr.Expr) {
	for _, e := range list {
		out = append(out, expr.Library{Any: e})
	}
	return out
}

// tcp loads the protocol and compares it.
var tcp = library(&google.Meta{Key: google.MetaKeyL4PROTO, Register: 1}, &google.Cmp{Register: 1, Data: []byte{unix.IPPROTO_TCP}})

// dport compares the port with 80.
var dport = library(&google.Payload{OperationType: google.PayloadLoad, DestRegister: 1, Base: google.PayloadBaseTransportHeader, Offset: 2, Len: 2}, &google.Cmp{Register: 1, Data: []byte{0, 80}})

// TestExtensions decompiles rules of iptables-nft. What the compiler adds is not moved past a match.
func TestExtensions(t *testing.T) {
	limit, drop := extension("match", "limit", "x"), extension("target", "REJECT", "x")
	for want, exprs := range map[string][]expr.Expr{
		`tcp dport 80 xt match "limit" counter xt target "REJECT"`:          append(append(append([]expr.Expr{}, tcp...), dport...), limit, expr.Library{Any: &google.Counter{Packets: 3}}, drop),
		`meta l4proto tcp xt match "limit" tcp dport 80 xt target "REJECT"`: append(append(append(append([]expr.Expr{}, tcp...), limit), dport...), drop),
		`xt match "limit"`: {limit, extension("match", "comment", "hello\x00")},
	} {
		rule, err := Rule(nft.FamilyIP, exprs, &table{})
		if err != nil {
			t.Errorf("%s: %v", want, err)
		} else if got := syntax.Print(rule); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := Comment([]expr.Expr{limit, extension("match", "comment", "a\x1b[1m\x00b")}); got != `a\u001b[1m` {
		t.Errorf("the comment is %q", got)
	}
}

// TestNoWords has expressions that nft has no words for: there is an error, and no text.
func TestNoWords(t *testing.T) {
	prefix := func(text string) []expr.Expr {
		return []expr.Expr{&expr.Log{Prefix: &text}}
	}
	for name, exprs := range map[string][]expr.Expr{
		"nothing":                             nil,
		"an unknown expression":               {&expr.Unknown{Name: "last"}},
		"an empty register":                   library(&google.Cmp{Register: 2, Data: []byte{1}}),
		"no such register":                    library(&google.Meta{Key: google.MetaKeyMARK, Register: 99}),
		"no such key":                         library(&google.Meta{Key: 999, Register: 1}, &google.Cmp{Register: 1, Data: []byte{1, 0, 0, 0}}),
		"a set that does not exist":           library(&google.Meta{Key: google.MetaKeyMARK, Register: 1}, &google.Lookup{SourceRegister: 1, SetName: "x"}),
		"a quote in a text":                   prefix(`a" drop`),
		"an escape in a text":                 prefix("\x1b[31m"),
		"a register that is read by nothing":  append(library(&google.Meta{Key: google.MetaKeyMARK, Register: 1}), library(&google.Counter{})...),
		"a comparison of less than the value": library(&google.Meta{Key: google.MetaKeyMARK, Register: 1}, &google.Cmp{Register: 1, Data: []byte{1}}),
	} {
		if rule, err := Rule(nft.FamilyIP, exprs, &table{}); rule != nil || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, %v, want errors.ErrUnsupported", name, rule, err)
		}
	}
	if _, err := Rule(99, tcp, &table{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an unknown family: %v, want errors.ErrUnsupported", err)
	}
}

// FuzzRule decompiles any expressions: no panic, and a text that compiles to them. The seeds are rules of the corpora.
func FuzzRule(f *testing.F) {
	scopes := declared.Sets{}
	anonymous := map[string]set.Anonymous{}
	n := 0
	for _, c := range corpora(f) {
		maps.Copy(scopes, c.Sets)
		for _, r := range c.rules {
			rule, err := compile.CompileRule(c.family, r, c)
			if n++; err != nil || n%23 != 0 {
				continue
			}
			encoded := nfttest.Must(expr.Encode(c.inKernel(rule)))
			maps.Copy(anonymous, c.anonymous)
			f.Add(uint8(c.family), encoded.Bytes)
		}
	}
	f.Fuzz(func(t *testing.T, family uint8, list []byte) {
		exprs, err := expr.Decode(list)
		if err != nil {
			return
		}
		scope := &table{family: nft.Family(family), Sets: scopes, anonymous: anonymous}
		tree, err := Rule(scope.family, exprs, scope)
		if err != nil {
			if tree != nil {
				t.Fatalf("a rule and an error: %v", err)
			}
			return
		}
		if text := syntax.Print(tree); len(tree.Stmts) == 0 || text == "" {
			t.Fatalf("%d expressions became no text", len(exprs))
		}
	})
}
