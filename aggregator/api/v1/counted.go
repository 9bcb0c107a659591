package weftv1

import (
	"strconv"
	"strings"
)

// Packets returns the packets in a counter's text: "packets 3 bytes 180" of a named counter, or
// "counter packets 3 bytes 180" of a statement. It returns 0 for other texts.
func Packets(text string) uint64 {
	text, ok := strings.CutPrefix(strings.TrimPrefix(text, "counter "), "packets ")
	if !ok {
		return 0
	}
	text, _, _ = strings.Cut(text, " ")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Packets returns the sum of the element's counters.
func (s *ElementState) Packets() (n uint64) {
	for _, text := range s.GetStateful() {
		n += Packets(text)
	}
	return n
}
