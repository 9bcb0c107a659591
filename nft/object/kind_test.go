package object

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// TestKinds checks that each kind has a number of its own, and unknown kinds none.
func TestKinds(t *testing.T) {
	for _, kind := range nft.ObjectKinds {
		if got := KindOf(Number(kind)); got != kind {
			t.Errorf("the number %d of %s is that of %q", Number(kind), kind, got)
		}
	}
	ref := Ref{Kind: nft.ObjectCounter, Name: "web"}
	if ref.String() != "counter web" || ref.Type() != Number(nft.ObjectCounter) {
		t.Errorf("%s has type %d", ref, ref.Type())
	}
	if n, kind := Number("other"), KindOf(99); n != 0 || kind != "" {
		t.Errorf("unknown kinds: number %d, kind %q", n, kind)
	}
	if known, err := (&Object{Type: 99}).Complete(nft.FamilyIP); known || err != nil {
		t.Errorf("object of type 99: known %t, %v", known, err)
	}
}
