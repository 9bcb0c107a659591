package weftv1

import (
	"fmt"
	"slices"
	"strings"
)

// Text returns "publisher/name", or "name" if the publisher is empty.
func (n *FragmentName) Text() string {
	if n.GetPublisher() == "" {
		return n.GetName()
	}
	return n.GetPublisher() + "/" + n.GetName()
}

// Text returns the name as in an nft command, such as "chain ip weft input". A rule without a
// handle has its position: "rule ip weft input #3". The text of no name is empty.
func (n *ObjectName) Text() string {
	words := []string{n.GetKind(), n.GetFamily(), n.GetTable(), n.GetName()}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	switch {
	case n.GetHandle() != 0:
		words = append(words, fmt.Sprintf("handle %d", n.GetHandle()))
	case n.GetIndex() != 0:
		words = append(words, fmt.Sprintf("#%d", n.GetIndex()))
	case n.GetKey() != "":
		words = append(words, "{ "+n.GetKey()+" }")
	}
	return strings.Join(words, " ")
}

// FragmentTexts returns the text of each name.
func FragmentTexts(names []*FragmentName) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, n.Text())
	}
	return out
}
