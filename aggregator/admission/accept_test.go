package admission

import (
	"testing"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
)

// anyScope knows no set, and every chain.
type anyScope struct{}

func (anyScope) Set(string) (*set.Set, bool)        { return nil, false }
func (anyScope) Chain(string) bool                  { return true }
func (anyScope) Object(nft.ObjectKind, string) bool { return false }
func (anyScope) Flowtable(string) bool              { return false }

// TestHonoured: only rules that accept set the bit, and set it once.
func TestHonoured(t *testing.T) {
	p := &access.Publisher{Name: "web", Honoured: 0x30}
	for text, want := range map[string]string{
		"accept":              "meta mark set meta mark | 0x00000030 accept",
		"tcp dport 80 accept": "tcp dport 80 meta mark set meta mark | 0x00000030 accept",
		"tcp dport 80 meta mark set meta mark | 0x00000030 accept": "tcp dport 80 meta mark set meta mark | 0x00000030 accept",
		"jump accept":                     "jump accept",
		"tcp dport 80 goto accept":        "tcp dport 80 goto accept",
		"tcp dport 80 drop":               "tcp dport 80 drop",
		"tcp dport vmap { 80 : accept }":  "tcp dport vmap { 80 : accept }",
		"counter":                         "counter",
		"tcp dport 80 counter log accept": "tcp dport 80 counter log meta mark set meta mark | 0x00000030 accept",
	} {
		r, err := compile.CompileRule(nft.FamilyInet, nft.Rule{Text: text, Comment: "c"}, anyScope{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := honoured(p, r, anyScope{})
		if err != nil || got.Text != want || got.Comment != "c" {
			t.Errorf("%q becomes %q %q, %v: want %q", text, got.Text, got.Comment, err, want)
		}
		if same, err := honoured(&access.Publisher{Name: "web"}, r, anyScope{}); err != nil || same != r {
			t.Errorf("%q changes for a publisher that is not honoured: %v, %v", text, same, err)
		}
	}
}
