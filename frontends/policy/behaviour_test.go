package policy

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/frontends/testing/behaviourtest"
)

var updateBehaviour = flag.Bool("update-behaviour", false, "write the last column of BEHAVIOUR.md anew")

// TestBehaviourTable compares BEHAVIOUR.md with the tests.
func TestBehaviourTable(t *testing.T) {
	behaviourtest.Table{
		File: "BEHAVIOUR.md", Tag: "Policy behaviour", Last: 65, Root: filepath.Join("..", ".."), Update: *updateBehaviour,
	}.Check(t)
}
