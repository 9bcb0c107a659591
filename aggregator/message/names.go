package message

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// Name returns nil for the zero Key.
func Name(k desired.Key) *weftv1.FragmentName {
	if k == (desired.Key{}) {
		return nil
	}
	return &weftv1.FragmentName{Publisher: k.Publisher, Name: k.Name}
}

// Key is the inverse of Name.
func Key(n *weftv1.FragmentName) desired.Key {
	return desired.Key{Publisher: n.GetPublisher(), Name: n.GetName()}
}

// Names is Name for several fragments.
func Names(keys []desired.Key) []*weftv1.FragmentName {
	out := make([]*weftv1.FragmentName, 0, len(keys))
	for _, k := range keys {
		out = append(out, Name(k))
	}
	return out
}

// Owner returns the fragment named "publisher/name", or nil for "".
func Owner(owner string) *weftv1.FragmentName {
	publisher, name, ok := strings.Cut(owner, "/")
	if !ok {
		return nil
	}
	return &weftv1.FragmentName{Publisher: publisher, Name: name}
}

// ExpireTime returns nil for the zero time.
func ExpireTime(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

// Head returns a fragment without its content.
func Head(name string, priority int32, lifetime weftv1.Lifetime, expires *timestamppb.Timestamp) *weftv1.Fragment {
	f := &weftv1.Fragment{Name: name, Priority: priority, Lifetime: lifetime}
	if expires != nil {
		f.Expiration = &weftv1.Fragment_ExpireTime{ExpireTime: expires}
	}
	return f
}
