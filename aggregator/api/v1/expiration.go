package weftv1

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// WithExpireTime returns the fragment with an expire time instead of its time to live: a shallow
// copy, or the fragment itself if it has no time to live. A publisher sends the copy again, so that
// the fragment does not live longer.
func (f *Fragment) WithExpireTime(now time.Time) *Fragment {
	ttl := f.GetTtl().AsDuration()
	if ttl <= 0 {
		return f
	}
	c := &Fragment{}
	f.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		c.ProtoReflect().Set(field, v)
		return true
	})
	c.Expiration = &Fragment_ExpireTime{timestamppb.New(now.Add(ttl))}
	return c
}
