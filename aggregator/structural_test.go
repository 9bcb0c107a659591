package aggregator

import (
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft/kernel"
)

// TestElementsWakeNoInspection has plans with and without something that findings are about: findings
// are looked for, and a commit has a line of its own in the log, only if rules, chains or sets change.
func TestElementsWakeNoInspection(t *testing.T) {
	elements := []kernel.Op{kernel.AddElements{}, kernel.DeleteElements{}, kernel.FlushSet{}}
	if structural(&desired.Plan{Ops: elements}) {
		t.Error("a commit of elements alone looks for findings")
	}
	for _, op := range []kernel.Op{kernel.AddRule{}, kernel.DeleteRule{}, kernel.AddChain{}, kernel.AddSet{}} {
		if !structural(&desired.Plan{Ops: append(elements, op)}) {
			t.Errorf("a commit with %T looks for no findings", op)
		}
	}
}
