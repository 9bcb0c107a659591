package pods

import (
	"testing"
)

func TestPods(t *testing.T) {
	newWorld(t, t.Context())
}
