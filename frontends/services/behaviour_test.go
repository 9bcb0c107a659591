package services

import (
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/frontends/testing/behaviourtest"
)

// TestBehaviourTable compares the list of behaviours with the tests.
func TestBehaviourTable(t *testing.T) {
	behaviourtest.Table{
		File: filepath.Join("testdata", "behaviour.txt"), Page: "behaviour-services.md", Tag: "Behaviour", Root: filepath.Join("..", ".."),
	}.Check(t)
}
