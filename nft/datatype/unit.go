package datatype

import "math/bits"

// Units are ascending, with their size in seconds or bytes.
type Units []Symbol

// The units of limits and quotas. Do not modify.
var (
	// TimeUnits are the units of rates (NFTA_LIMIT_UNIT).
	TimeUnits = Units{{"second", 1}, {"minute", 60}, {"hour", 60 * 60}, {"day", 24 * 60 * 60}, {"week", 7 * 24 * 60 * 60}}
	// ByteUnits are the units of amounts of data.
	ByteUnits = Units{{"bytes", 1}, {"kbytes", 1 << 10}, {"mbytes", 1 << 20}}
)

// Names returns the names.
func (u Units) Names() []string {
	names := make([]string, len(u))
	for i := range u {
		names[i] = u[i].Name
	}
	return names
}

// Size returns the size of a unit.
func (u Units) Size(name string) (uint64, bool) { return lookupName(u, name) }

// Name returns the name of a size.
func (u Units) Name(size uint64) (string, bool) { return lookupValue(u, size) }

// Scale converts to seconds or bytes, false for an unknown unit or on overflow.
func (u Units) Scale(n uint64, name string) (uint64, bool) {
	size, ok := u.Size(name)
	overflow, product := bits.Mul64(n, size)
	return product, ok && overflow == 0
}

// Reduce converts to the largest unit with a whole number.
func (u Units) Reduce(n uint64) (uint64, string) {
	for i := len(u) - 1; i > 0; i-- {
		if n != 0 && n%u[i].Value == 0 {
			return n / u[i].Value, u[i].Name
		}
	}
	return n, u[0].Name
}
