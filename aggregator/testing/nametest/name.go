package nametest

import (
	"regexp"
	"strconv"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

var objectName = regexp.MustCompile(`^((?:ct )?\S+) (\S+) (\S+)(?: ([^\s{]\S*))?(?: handle (\d+)| #(\d+)| \{ (.*) \}| .*)?$`)

// Parse returns the name of an object with a text form, or nil. It does not check the words.
func Parse(text string) *weftv1.ObjectName {
	m := objectName.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	handle, _ := strconv.ParseUint(m[5], 10, 64)
	index, _ := strconv.ParseUint(m[6], 10, 32)
	return &weftv1.ObjectName{
		Kind: m[1], Family: m[2], Table: m[3], Name: m[4],
		Handle: handle, Index: uint32(index), Key: m[7], //nolint:gosec // it was parsed with 32 bits
	}
}
