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

// convertFields replaces the reserved fields of a fragment by those that stand for
// them today.
func convertFields(f *weftv1.Fragment) {
	for _, t := range f.GetTables() {
		roles := make(map[string]weftv1.MapRole)
		takeUnknown(t, func(n protowire.Number, value []byte, _ uint64) {
			switch n {
			case legacyConntrackMaps:
				roles[string(value)] = weftv1.MapRole_MAP_ROLE_CONNTRACK
			case legacyAffinityMaps:
				roles[string(value)] = weftv1.MapRole_MAP_ROLE_AFFINITY
			}
		})
		for _, m := range t.GetMaps() {
			if role, ok := roles[m.GetName()]; ok {
				m.Role = role
			}
		}
		for _, s := range slices.Concat(t.GetSets(), t.GetMaps()) {
			convertElements(s.GetElements())
		}
	}
}

func convertElements(elements []*weftv1.Element) {
	for _, e := range elements {
		takeUnknown(e, func(n protowire.Number, _ []byte, ms uint64) {
			if n == legacyTimeout {
				e.Timeout = milliseconds(ms)
			}
		})
		takeUnknown(e.GetState(), func(n protowire.Number, _ []byte, ms uint64) {
			if n == legacyExpires {
				e.State.Expires = milliseconds(ms)
			}
		})
	}
}

func milliseconds(n uint64) *durationpb.Duration {
	return durationpb.New(time.Duration(n) * time.Millisecond) //nolint:gosec // it was written from a time.Duration
}

// takeUnknown calls field for the unknown fields of a message, with the value of a
// string or of a number, and removes them.
func takeUnknown(m proto.Message, field func(n protowire.Number, value []byte, number uint64)) {
	b := []byte(m.ProtoReflect().GetUnknown())
	if len(b) == 0 {
		return
	}
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			break
		}
		b = b[size:]
		switch kind {
		case protowire.BytesType:
			value, _ := protowire.ConsumeBytes(b)
			field(n, value, 0)
		case protowire.VarintType:
			number, _ := protowire.ConsumeVarint(b)
			field(n, nil, number)
		}
		if size = protowire.ConsumeFieldValue(n, kind, b); size < 0 {
			break
		}
		b = b[size:]
	}
	m.ProtoReflect().SetUnknown(nil)
}
