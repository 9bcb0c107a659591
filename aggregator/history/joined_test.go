package history

import (
	"fmt"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// TestJoinedSharesCostOthersNothing has a publisher whose changes are all there while the shares of many
// others are joined: what is forgotten is not its own.
func TestJoinedSharesCostOthersNothing(t *testing.T) {
	r := start(t, t.TempDir(), Config{MaxEntries: 10_000})
	r.Record(snapshot(1, false, list("a", "10.0.0.1")))
	must(t, r.Flush(t.Context()))
	lost := func(publisher string) (revision uint64) {
		must(t, r.view(func(all *tables) error {
			s := all.find(publisher)
			revision = s.lost()
			return nil
		}))
		return revision
	}
	must(t, r.cfg.Store.Update(func(tx *store.Tx) error {
		all, err := open(tx)
		must(t, err)
		for i := range maxShares {
			s, err := all.obtain(fmt.Sprint("p", i))
			must(t, err)
			must(t, s.forgotten.PutNumber(s.publisher, uint64(i)+2)) //nolint:gosec // a count
		}
		return nil
	}))
	r.Record(commit(5000, Update{Fragment: desired.Key{Publisher: "late", Name: "list"}}))
	must(t, r.Flush(t.Context()))
	if got := lost(key("a").Publisher); got != 0 {
		t.Errorf("revision %d is forgotten, and the publisher has had one change, which is there", got)
	}
	for _, publisher := range []string{"late", "p7", "unknown"} {
		if got := lost(publisher); got < maxShares {
			t.Errorf("%s may have had changes up to revision %d: only %d are forgotten", publisher, maxShares, got)
		}
	}
}
