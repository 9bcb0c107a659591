package statedir

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Numbers of fields that weft.proto has reserved since the files of legacy.go were
// written.
const (
	legacyConntrackMaps = 7 // of Table: names
	legacyAffinityMaps  = 8 // of Table: names
	legacyTimeout       = 4 // of Element: milliseconds
	legacyExpires       = 1 // of ElementState: milliseconds
)

var legacyRoles = map[protowire.Number]weftv1.MapRole{
	legacyConntrackMaps: weftv1.MapRole_MAP_ROLE_CONNTRACK,
	legacyAffinityMaps:  weftv1.MapRole_MAP_ROLE_AFFINITY,
}

// convertFields replaces the reserved fields of a fragment by those that stand for
// them today.
func convertFields(f *weftv1.Fragment) {
	for _, t := range f.GetTables() {
		takeUnknown(t, func(n protowire.Number, value []byte) {
			name, _ := protowire.ConsumeString(value)
			for _, m := range t.GetMaps() {
				if role, ok := legacyRoles[n]; ok && m.GetName() == name {
					m.Role = role
				}
			}
		})
		for _, s := range slices.Concat(t.GetSets(), t.GetMaps()) {
			for _, e := range s.GetElements() {
				takeUnknown(e, func(n protowire.Number, value []byte) {
					if n == legacyTimeout {
						e.Timeout = milliseconds(value)
					}
				})
				takeUnknown(e.GetState(), func(n protowire.Number, value []byte) {
					if n == legacyExpires {
						e.State.Expires = milliseconds(value)
					}
				})
			}
		}
	}
}

func milliseconds(value []byte) *durationpb.Duration {
	n, _ := protowire.ConsumeVarint(value)
	return durationpb.New(time.Duration(n) * time.Millisecond) //nolint:gosec // it was written from a time.Duration
}

// takeUnknown calls field with the number and the encoded value of each unknown field
// of a message, and removes them.
func takeUnknown(m proto.Message, field func(n protowire.Number, value []byte)) {
	b := m.ProtoReflect().GetUnknown()
	if len(b) == 0 {
		return
	}
	for len(b) > 0 {
		n, _, tag := protowire.ConsumeTag(b)
		_, _, size := protowire.ConsumeField(b)
		field(n, b[tag:size])
		b = b[size:]
	}
	m.ProtoReflect().SetUnknown(nil)
}
