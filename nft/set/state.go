package set

import (
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft/datatype"
)

const expiresWord = "expires "

const statefulSeparator = "; "

// NewState returns Element.State.
func NewState(expires time.Duration, stateful []string) string {
	if expires != 0 {
		stateful = append([]string{expiresWord + datatype.FormatDuration(expires)}, stateful...)
	}
	return strings.Join(stateful, statefulSeparator)
}

// Expires returns the remaining time, 0 for the whole timeout.
func (e *Element) Expires() time.Duration {
	rest, ok := strings.CutPrefix(e.State, expiresWord)
	if !ok {
		return 0
	}
	rest, _, _ = strings.Cut(rest, statefulSeparator)
	d, _ := datatype.ParseDuration(rest)
	return d
}

// Stateful returns the statements with their state.
func (e *Element) Stateful() []string {
	s := e.State
	if strings.HasPrefix(s, expiresWord) {
		_, s, _ = strings.Cut(s, statefulSeparator)
	}
	if s == "" {
		return nil
	}
	return strings.Split(s, statefulSeparator)
}
