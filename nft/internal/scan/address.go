package scan

import "strings"

// address returns a length or 0. As in nft(8), the longest match wins.
func address(text string) int {
	return max(ipv4Length(text), ipv6Length(text), macLength(text))
}

func ipv4Length(text string) int { return groupsLength(text, 4, '.', 3, isDigit) }

func macLength(text string) int { return groupsLength(text, 6, ':', 2, isHex) }

func groupsLength(text string, groups int, sep byte, most int, digit func(byte) bool) int {
	n := 0
	for group := range groups {
		if group > 0 {
			if n == len(text) || text[n] != sep {
				return 0
			}
			n++
		}
		first := n
		for n < first+most && n < len(text) && digit(text[n]) {
			n++
		}
		if n == first {
			return 0
		}
	}
	return n
}

func hexLength(text string, most int) int {
	n := 0
	for n < most && n < len(text) && isHex(text[n]) {
		n++
	}
	return n
}

// ipv6Length accepts the two forms with an IPv4 address at the end that nft knows: ::A and
// ::ffff:A.
func ipv6Length(text string) int {
	best, n, groups, gap := 0, 0, 0, false
	for {
		digits := hexLength(text[n:], 4)
		if digits > 0 {
			n += digits
			groups++
		}
		if groups == 8 && !gap || gap && groups <= 7 {
			best = n
		}
		switch {
		case groups >= 8, !strings.HasPrefix(text[n:], ":"):
			return max(best, mappedLength(text))
		case strings.HasPrefix(text[n:], "::") && !gap:
			gap = true
			n += 2
			if groups <= 7 {
				best = n
			}
		case digits == 0, hexLength(text[n+1:], 1) == 0:
			return best
		default:
			n++
		}
	}
}

func mappedLength(text string) int {
	rest, ok := strings.CutPrefix(text, "::")
	if !ok {
		return 0
	}
	if len(rest) > 5 && strings.EqualFold(rest[:5], "ffff:") {
		rest = rest[5:]
	}
	if n := ipv4Length(rest); n > 0 {
		return len(text) - len(rest) + n
	}
	return 0
}

// classID returns a length, such as of "1:2a", or 0. As in nft(8), a class ends before a blank,
// ",", "}", ":" or "-".
func classID(text string) int {
	n := hexLength(text, 4)
	if n == 0 || n == len(text) || text[n] != ':' {
		return 0
	}
	minor := hexLength(text[n+1:], 4)
	end := n + 1 + minor
	if minor == 0 || end < len(text) && !strings.ContainsRune(" \t\n:-},", rune(text[end])) {
		return 0
	}
	return end
}

// IsClassID reports whether text begins with a traffic control class.
func IsClassID(text string) bool { return classID(text) > 0 }
