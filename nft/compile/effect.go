package compile

import (
	"encoding/binary"
	"math"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
)

// Effects describe the reach of a rule.
type Effects struct {
	Classes nft.ClassSet
	// bits of the packet mark that can change
	Mark uint32
	// most logged packets per hour, or UnlimitedLog
	LogRate uint64
}

// UnlimitedLog is the LogRate of a rule that can log every packet.
const UnlimitedLog = math.MaxUint32

// A bit of the packet mark is preserved if the rule loads the mark, replaces other bits by
// constants, and writes the result back. Any other write can change all bits.
func changedMark(list []expr.Expr) uint32 {
	var changed uint32
	// bits of register reg that equal the mark's
	var reg, kept uint32
	for _, e := range list {
		switch e := e.(type) {
		case *expr.Bitwise:
			if e.Op != expr.BitwiseBool || e.Source != reg || e.Dest != reg || len(e.Mask) != 4 || len(e.Xor) != 4 {
				kept = 0
				continue
			}
			kept &= binary.NativeEndian.Uint32(e.Mask) &^ binary.NativeEndian.Uint32(e.Xor)
		case expr.Library:
			m, ok := e.Any.(*google.Meta)
			switch {
			case !ok || uint32(m.Key) != unix.NFT_META_MARK:
				kept = 0
			case !m.SourceRegister:
				reg, kept = m.Register, math.MaxUint32
			case m.Register == reg:
				changed |= ^kept
				kept = 0
			default:
				changed = math.MaxUint32
			}
		default:
			kept = 0
		}
	}
	return changed
}

// burstsPerHour assumes that a limit's burst is full again once a minute.
const burstsPerHour = 60

// Limits in packets before a log statement apply to it. Limits of elements do not count because a
// set has many elements, and named limits because another publisher can declare the object.
func logRate(list []expr.Expr) uint64 {
	var rate uint64
	limit := uint64(UnlimitedLog)
	for _, e := range list {
		switch e := expr.Unwrap(e).(type) {
		case *google.Limit:
			limit = min(limit, packetsPerHour(e))
		case *expr.Log:
			rate = min(rate+limit, UnlimitedLog)
		}
	}
	return rate
}

// packetsPerHour returns the packets that l allows in an hour, rounded up, or UnlimitedLog.
func packetsPerHour(l *google.Limit) uint64 {
	if l.Over || l.Type != google.LimitTypePkts || l.Unit == 0 || l.Rate > UnlimitedLog {
		return UnlimitedLog
	}
	const hour = uint64(google.LimitTimeHour)
	unit := uint64(l.Unit)
	return min((l.Rate*hour+unit-1)/unit+burstsPerHour*uint64(l.Burst), UnlimitedLog)
}
