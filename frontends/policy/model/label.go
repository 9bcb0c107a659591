package model

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func validLabel(key, value string) error {
	if err := validKey(key); err != nil {
		return err
	}
	if value == "" || plainName(value) {
		return nil
	}
	if why := validation.IsValidLabelValue(value); len(why) > 0 {
		return fmt.Errorf("value %q of label %q: %s", shorten(value), key, strings.Join(why, "; "))
	}
	return nil
}

func validKey(key string) error {
	if plainName(key) {
		return nil
	}
	if why := validation.IsQualifiedName(key); len(why) > 0 {
		return fmt.Errorf("label %q: %s", shorten(key), strings.Join(why, "; "))
	}
	return nil
}

// maxPlainName limits a value, and a key without a prefix.
const maxPlainName = 63

// plainName is faster than the regular expressions of package validation.
func plainName(s string) bool {
	if s == "" || len(s) > maxPlainName || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func shorten(s string) string {
	if len(s) <= 2*maxPlainName {
		return s
	}
	return strings.ToValidUTF8(s[:2*maxPlainName], "") + "..."
}
