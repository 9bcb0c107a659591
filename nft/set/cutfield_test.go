package set

import (
	"testing"
)

func TestCutField(t *testing.T) {
	for _, tt := range []struct {
		text, field, rest string
		found             bool
	}{
		{"10.0.0.1 . tcp . 80", "10.0.0.1", "tcp . 80", true},
		{"10.0.0.1\t.\ttcp", "10.0.0.1", "tcp", true},
		{"10.0.0.1\t. tcp", "10.0.0.1", "tcp", true},
		{"10.0.0.1 .\ttcp", "10.0.0.1", "tcp", true},
		{`"a . b" . 80`, `"a . b"`, "80", true},
		{`80 . "a . b"`, "80", `"a . b"`, true},
		{`"a . b"`, `"a . b"`, "", false},
		{" 80 ", "80", "", false},
		{"80 .", "80 .", "", false},
		{". 80", ". 80", "", false},
		{" . ", "", "", true},
		{"", "", "", false},
	} {
		if field, rest, found := cutField(tt.text); field != tt.field || rest != tt.rest || found != tt.found {
			t.Errorf("cutField(%q) = %q, %q, %t: want %q, %q, %t", tt.text, field, rest, found, tt.field, tt.rest, tt.found)
		}
	}
}
