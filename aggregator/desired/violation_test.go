package desired_test

import (
	"errors"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
)

func TestRejectionError(t *testing.T) {
	v := desired.Violation{Object: desired.Place{Table: ipWeft, Kind: "chain", Name: "c"}, Message: "is wrong", Reason: desired.ReasonConflict}
	tests := []struct {
		r    desired.Rejection
		want string
	}{
		{desired.Rejection{Fragment: policy}, "apply fragment policy/web"},
		{desired.Rejection{policy, []desired.Violation{v}}, "apply fragment policy/web: table ip weft chain c: is wrong"},
		{desired.Rejection{policy, []desired.Violation{{Message: "snapshot first"}, v, v}}, "apply fragment policy/web: snapshot first (and 2 more)"},
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
	for range 3 * desired.MaxViolations {
		tu.Elements = append(tu.Elements, desired.Elements{Set: "not declared"})
	}
	var r *desired.Rejection
	if err := h.Apply(snapshot(policy, 0, tu)); !errors.As(err, &r) || len(r.Violations) != desired.MaxViolations {
		t.Errorf("Apply: %v, want %d violations", err, desired.MaxViolations)
	}
}
