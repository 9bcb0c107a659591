package compile

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

func TestTranslates(t *testing.T) {
	for _, tt := range []struct {
		rule string
		want bool
	}{
		{"accept", false},
		{"ip saddr 10.0.0.1 counter drop", false},
		{"jump nat", false},
		{"masquerade", true},
		{"ip protocol tcp masquerade to :1024-2048", true},
		{"tcp dport 80 redirect to :8080", true},
		{"dnat to 10.0.0.1", true},
		{"snat to 10.0.0.1-10.0.0.9 persistent", true},
		{"dnat to tcp dport map { 80 : 10.0.0.1, 81 : 10.0.0.2 }", true},
	} {
		r, err := CompileRule(nft.FamilyIP, nft.Rule{Text: tt.rule}, anyChain{})
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if r.Translates() != tt.want {
			t.Errorf("%s: translates is %v", tt.rule, !tt.want)
		}
	}
}

// anyChain is a scope that has every chain and no set.
type anyChain struct{}

func (anyChain) Set(string) (*set.Set, bool) { return nil, false }

func (anyChain) Chain(string) bool { return true }

func (anyChain) Object(nft.ObjectKind, string) bool { return true }

func (anyChain) Flowtable(string) bool { return true }
