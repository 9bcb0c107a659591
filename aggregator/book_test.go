package aggregator

import (
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// TestRecordedLifetime changes lifetimes and looks at what a crash before the
// commit, and one after it, would leave.
func TestRecordedLifetime(t *testing.T) {
	const sticky, session = weftv1.Lifetime_LIFETIME_STICKY, weftv1.Lifetime_LIFETIME_SESSION
	b := newBook()
	put := func(l weftv1.Lifetime) {
		b.apply(&submission{
			update:   &desired.Update{Fragment: desired.Key{Publisher: "p", Name: "f"}, Snapshot: true, Tables: []desired.TableUpdate{{}}},
			lifetime: l,
		})
	}
	recorded := func(when string, want weftv1.Lifetime) {
		t.Helper()
		if r := b.records(); len(r) != 1 || r[0].lifetime() != want {
			t.Errorf("recorded %s: %+v, want %v", when, r, want)
		}
	}
	put(sticky)
	recorded("before the first commit", sticky)
	b.accept()
	put(session)
	recorded("before the commit", sticky)
	version := b.version
	b.accept()
	recorded("after the commit", session)
	if b.version == version {
		t.Error("the record is not written again")
	}
	put(sticky)
	recorded("before the way back is committed", sticky)
	b.rollback()
	recorded("after a refusal", session)
}
