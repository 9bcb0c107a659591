package weftv1

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// WithExpireTime returns a shallow copy of the fragment with an expire time, or the fragment itself
// without a time to live. A publisher that sends the copy again does not extend the time.
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
