package conntrack

import "testing"

// TestDecodeMalformed decodes messages that are not entries.
func TestDecodeMalformed(t *testing.T) {
	const header = "\x02\x00\x00\x00"
	for name, msg := range map[string]string{
		"empty":              "",
		"no attributes":      header,
		"part of a header":   header + "\x08\x00",
		"length too small":   header + "\x02\x00\x01\x80",
		"tuple too long":     header + "\xff\x00\x01\x80",
		"tuple cut":          header + "\x08\x00\x01\x80\xff\x00\x01\x80",
		"nested tuple cut":   header + "\x0c\x00\x01\x80\x08\x00\x01\x80\xff\x00\x02\x00",
		"reply without ends": header + "\x04\x00\x02\x80",
		"id alone":           header + "\x08\x00\x0c\x00\x01\x02\x03\x04",
	} {
		var e Entry
		if e.decode([]byte(msg), SelectAll()) {
			t.Errorf("%s: decoded %+v", name, e)
		}
	}
}
