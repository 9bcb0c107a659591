package desired

import (
	"errors"
	"testing"
)

func TestRejectionError(t *testing.T) {
	v := Violation{Object: Place{Table: ipWeft, Kind: "chain", Name: "c"}, Message: "is wrong", Reason: ReasonConflict}
	tests := []struct {
		r    Rejection
		want string
	}{
		{Rejection{Fragment: policy}, "apply fragment policy/web"},
		{Rejection{policy, []Violation{v}}, "apply fragment policy/web: table ip weft chain c: is wrong"},
		{Rejection{policy, []Violation{{Message: "snapshot first"}, v, v}}, "apply fragment policy/web: snapshot first (and 2 more)"},
	}
	for _, tt := range tests {
		if got := tt.r.Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
}

func TestViolationsAreBounded(t *testing.T) {
	h := newHarness(t)
	tu := in(ipWeft)
	for range 3 * maxViolations {
		tu.Elements = append(tu.Elements, Elements{Set: "not declared"})
	}
	var r *Rejection
	if err := h.Apply(snapshot(policy, 0, tu)); !errors.As(err, &r) || len(r.Violations) != maxViolations {
		t.Errorf("Apply: %v, want %d violations", err, maxViolations)
	}
}
