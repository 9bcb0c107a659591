package model

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzLabel compares with the check of the API server.
func FuzzLabel(f *testing.F) {
	for _, s := range []string{
		"", "a", "A-b_c.9", "-a", "a-", "a b", "\xff", "é", "example.com/a", "example.com/", "/a", "Example.com/a", "a/b/c",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("é", 100),
	} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		want := len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
		if err := validLabel(key, value); (err == nil) != want {
			t.Errorf("label %q=%q: %v, want valid: %v", key, value, err, want)
		}
	})
}
