package nft

import (
	"slices"
	"testing"
)

func TestClasses(t *testing.T) {
	names := map[string]bool{}
	var all ClassSet
	for _, c := range Classes() {
		if c.String() == "" || c.Does() == "" || names[c.String()] {
			t.Errorf("class %d: name %q, does %q", uint8(c), c, c.Does())
		}
		names[c.String()] = true
		if all.Has(c) {
			t.Errorf("%s is in a set before it is added", c)
		}
		if all = all.With(c); !all.Has(c) {
			t.Errorf("%s is not in the set", c)
		}
	}
	if !slices.Equal(all.All(), Classes()) {
		t.Errorf("the set has %v", all.All())
	}
	if got := ClassSet(0).With(0).All(); len(got) != 1 || got[0] != 0 {
		t.Errorf("an unknown class is lost: %v", got)
	}
	for _, c := range []Class{0, numClasses} {
		if c.String() == "" || c.Does() == "" {
			t.Errorf("class %d has no text", uint8(c))
		}
	}
}
