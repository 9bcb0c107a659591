package get

import (
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// FormatFragment prints a fragment as a .nft file.
func FormatFragment(f *weftv1.Fragment) (string, error) {
	tables := make([]nft.Table, len(f.GetTables()))
	for i, m := range f.GetTables() {
		var err error
		if tables[i], err = convert.TableOf(m); err != nil {
			return "", fmt.Errorf("format fragment %s: %w", f.GetName(), err)
		}
	}
	return ruleset.Format(tables), nil
}
