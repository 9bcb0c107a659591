package aggregator

import (
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// nameOf returns the name of a fragment as a message, nil for no fragment.
func nameOf(k desired.Key) *weftv1.FragmentName {
	if k == (desired.Key{}) {
		return nil
	}
	return &weftv1.FragmentName{Publisher: k.Publisher, Name: k.Name}
}

// keyOf is the inverse of nameOf.
func keyOf(n *weftv1.FragmentName) desired.Key {
	return desired.Key{Publisher: n.GetPublisher(), Name: n.GetName()}
}

// namesOf is nameOf for several fragments.
func namesOf(keys []desired.Key) []*weftv1.FragmentName {
	out := make([]*weftv1.FragmentName, 0, len(keys))
	for _, k := range keys {
		out = append(out, nameOf(k))
	}
	return out
}

// ownerName returns the fragment that "publisher/name" names; nil if it is empty.
func ownerName(owner string) *weftv1.FragmentName {
	publisher, name, ok := strings.Cut(owner, "/")
	if !ok {
		return nil
	}
	return &weftv1.FragmentName{Publisher: publisher, Name: name}
}
