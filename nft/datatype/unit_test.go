package datatype

import "testing"

// TestUnits converts amounts to their unit and back.
func TestUnits(t *testing.T) {
	for _, tt := range []struct {
		units Units
		n     uint64
		unit  string
		size  uint64
	}{
		{ByteUnits, 0, "bytes", 0},
		{ByteUnits, 1023, "bytes", 1023},
		{ByteUnits, 3, "kbytes", 3 << 10},
		{ByteUnits, 2048, "mbytes", 2048 << 20},
		{TimeUnits, 1, "week", 604800},
		{TimeUnits, 90, "second", 90},
	} {
		if got, ok := tt.units.Scale(tt.n, tt.unit); !ok || got != tt.size {
			t.Errorf("%d %s: %d, %v; want %d", tt.n, tt.unit, got, ok, tt.size)
		}
		if n, unit := tt.units.Reduce(tt.size); n != tt.n || unit != tt.unit {
			t.Errorf("%d: %d %s; want %d %s", tt.size, n, unit, tt.n, tt.unit)
		}
	}
	if names := ByteUnits.Names(); len(names) != 3 || names[0] != "bytes" {
		t.Errorf("units of bytes: %v", names)
	}
	if _, ok := ByteUnits.Scale(1<<44, "mbytes"); ok {
		t.Error("an amount of 2^64 bytes fits in 64 bits")
	}
	if _, ok := ByteUnits.Scale(1, "gbytes"); ok {
		t.Error("gbytes is a unit")
	}
	if name, ok := TimeUnits.Name(3600); !ok || name != "hour" {
		t.Errorf("3600 seconds are called %q", name)
	}
	if _, ok := TimeUnits.Name(7); ok {
		t.Error("7 seconds have a name")
	}
}

// TestTypeNames checks that a type is its name in messages.
func TestTypeNames(t *testing.T) {
	for _, name := range Names() {
		if typ, ok := Lookup(name); !ok || typ.String() != name {
			t.Errorf("%s is called %v", name, typ)
		}
	}
	if got := Verdict.Format([]byte{0, 0, 0, 9}); got != "9" {
		t.Errorf("an unknown verdict is %q", got)
	}
}
