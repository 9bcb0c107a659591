package e2e

import (
	"errors"
	"path/filepath"
	"testing"
)

// deployManifests: the API server accepts every file of deploy/kubernetes. Package helm compares their
// command lines with weft's flags.
func deployManifests(t *testing.T, e *env) {
	variants, err := filepath.Glob("../kubernetes/*/weft.yaml")
	if err != nil || len(variants) == 0 {
		t.Fatalf("find manifests: %v, %d files", err, len(variants))
	}
	for _, path := range variants {
		variant := filepath.Base(filepath.Dir(path))
		for _, file := range []string{"rbac.yaml", "weft.yaml"} {
			objects, err := manifests(filepath.Join(variant, file))
			if err == nil && len(objects) == 0 {
				err = errors.New("nothing in it")
			}
			if err == nil {
				err = e.cluster.Apply(e.ctx, true, objects...)
			}
			if err != nil {
				t.Errorf("%s/%s: %v", variant, file, err)
			}
		}
	}
}
