package policy

import (
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/frontends/testing/behaviourtest"
)

// TestBehaviourTable compares the list of behaviours with the tests.
func TestBehaviourTable(t *testing.T) {
	behaviourtest.Table{
		File: filepath.Join("testdata", "behaviour.txt"), Page: "behaviour-policy.md", Tag: "Policy behaviour", Root: filepath.Join("..", ".."),
	}.Check(t)
}
