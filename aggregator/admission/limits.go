package admission

import (
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired"
)

// Limits of an update unless stated otherwise. Real rulesets stay far below them. Limits of a
// configured publisher (package access) are sums over its fragments, and lower.
const (
	// MaxFragments is the number of fragments of all publishers together.
	MaxFragments = 10_000
	// MaxPlan is the number of fragments in a plan.
	MaxPlan = 1_000
	// MaxTables and the following are also limits of a fragment.
	MaxTables   = desired.MaxTables
	MaxChains   = desired.MaxChains
	MaxSets     = desired.MaxSets
	MaxObjects  = desired.MaxObjects
	MaxRules    = desired.MaxRules
	MaxElements = desired.MaxElements
	// MaxBytes is the encoded size of an update, over all its parts.
	MaxBytes = 512 << 20
	// MaxRuleText is the length of a rule's or named object's text in bytes.
	MaxRuleText = 16 << 10
	// MaxElementText is the length of an element's key or value in bytes.
	MaxElementText = 1 << 10
	// MaxName is the length of a name of a table, chain, set, map or object in bytes
	// (NFT_NAME_MAXLEN less the final zero).
	MaxName = 255
	// MaxIdentity is the length of a publisher's or fragment's name in bytes.
	MaxIdentity = 63
	// MaxViolations is the number of violations in an answer. Others are only counted.
	MaxViolations = 32
)

// CheckIdentity validates the name of a publisher or fragment: 1 to 63 of [a-z0-9._-], the first a
// letter or digit. The error wraps [ErrInvalidName].
func CheckIdentity(kind, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: %s name is empty", ErrInvalidName, kind)
	case len(name) > MaxIdentity:
		return fmt.Errorf("%w: %s name %.16q... has %d bytes: at most %d are allowed", ErrInvalidName, kind, name, len(name), MaxIdentity)
	case strings.IndexByte("._-", name[0]) >= 0:
		return fmt.Errorf("%w: %s name %q: want a letter or digit first", ErrInvalidName, kind, name)
	}
	for _, c := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._-", c) {
			return fmt.Errorf("%w: %s name %q: want only [a-z0-9._-]", ErrInvalidName, kind, name)
		}
	}
	return nil
}

// CheckKey is CheckIdentity for a fragment and its publisher.
func CheckKey(key desired.Key) error {
	if err := CheckIdentity("publisher", key.Publisher); err != nil {
		return err
	}
	return CheckIdentity("fragment", key.Name)
}

// checkName accepts names that nft(8) can read without quotes.
func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("name is empty")
	}
	if len(name) > MaxName {
		return fmt.Errorf("name has %d bytes: at most %d are allowed", len(name), MaxName)
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' {
			continue
		}
		if i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '/') {
			continue
		}
		return fmt.Errorf("name %q: want a letter first, and then only letters, digits, _ . - and /", name)
	}
	return nil
}
