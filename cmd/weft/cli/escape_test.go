package cli_test

import (
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func TestEscape(t *testing.T) {
	m := &weftv1.GetTableResponse{
		Status: &weftv1.TableStatus{Name: "t", Comment: "a\x1b[2Jb", Flags: []string{"x\u202e"}},
		Chains: []*weftv1.MergedChain{{Chain: &weftv1.Chain{Name: "c\n# forged"}, Rules: []*weftv1.MergedRule{{Rule: &weftv1.Rule{Text: "log prefix \"\u009b\""}}}}},
	}
	cli.Escape(m)
	for got, want := range map[string]string{
		m.GetStatus().GetComment():                         `a\u001b[2Jb`,
		m.GetStatus().GetFlags()[0]:                        `x\u202e`,
		m.GetChains()[0].GetChain().GetName():              `c\u000a# forged`,
		m.GetChains()[0].GetRules()[0].GetRule().GetText(): `log prefix "\u009b"`,
	} {
		if got != want {
			t.Errorf("%q: want %q", got, want)
		}
	}
	v := &weftv1.Violation{Message: "a\nb", Excerpt: "\tline\x1b\n\t^"}
	cli.Escape(v)
	if v.GetMessage() != `a\u000ab` || v.GetExcerpt() != "\tline\\u001b\n\t^" {
		t.Errorf("%q, %q", v.GetMessage(), v.GetExcerpt())
	}
}
