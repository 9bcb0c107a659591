package cli

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft/lint"
)

// Finding returns a finding as text of a few lines.
func Finding(f *weftv1.Finding) string {
	return lint.Format(f.GetId(), f.GetText(), f.GetRemedy(), f.GetRules(), f.GetExample(), int(f.GetMore()))
}
