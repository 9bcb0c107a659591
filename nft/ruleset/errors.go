package ruleset

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft/syntax"
)

// ErrorList holds the errors of a file in text order.
type ErrorList struct {
	Name   string
	Errors []*syntax.Error
}

// Error returns one line "name:line:column: message" per error.
func (l *ErrorList) Error() string {
	lines := make([]string, len(l.Errors))
	for i, e := range l.Errors {
		lines[i] = e.Error()
		if l.Name != "" && e.File == "" {
			lines[i] = l.Name + ":" + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (l *ErrorList) Unwrap() []error {
	out := make([]error, len(l.Errors))
	for i, e := range l.Errors {
		out[i] = e
	}
	return out
}

// sortErrors keeps the first error of each place.
func sortErrors(errs []*syntax.Error) []*syntax.Error {
	slices.SortStableFunc(errs, func(a, b *syntax.Error) int { return a.Pos.Compare(b.Pos) })
	return slices.CompactFunc(errs, func(a, b *syntax.Error) bool { return a.Pos == b.Pos })
}
