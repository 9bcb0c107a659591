package datatype

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseAndFormat(t *testing.T) {
	for _, test := range []struct {
		typ  *Type
		text string
		// want is the packed value, written as the machine stores it on
		// little-endian hosts.
		want string
		// format is what Format returns; empty means text.
		format string
	}{
		{IPv4Addr, "10.0.0.1", "\x0a\x00\x00\x01", ""},
		{IPv6Addr, "2001:db8::1", "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", ""},
		{IPv6Addr, "::ffff:1.2.3.4", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x01\x02\x03\x04", ""},
		{EtherAddr, "00:11:22:33:44:55", "\x00\x11\x22\x33\x44\x55", ""},
		{EtherAddr, "1:2:3:4:5:6", "\x01\x02\x03\x04\x05\x06", "01:02:03:04:05:06"},
		{LLAddr, "00:11:22", "\x00\x11\x22", ""},
		{EtherType, "vlan", "\x81\x00", "8021q"},
		{EtherType, "0x1234", "\x12\x34", ""},
		{InetProto, "tcp", "\x06", ""},
		{InetProto, "icmpv6", "\x3a", "ipv6-icmp"},
		{InetProto, "comp", "\x6c", "ipcomp"},
		{InetProto, "SCTP", "\x84", "sctp"},
		{InetProto, "010", "\x08", "egp"},
		{InetService, "http", "\x00\x50", "80"},
		{InetService, "domain-s", "\x03\x55", "853"},
		{InetService, "z3950", "\x00\xd2", "210"},
		{InetService, "0x50", "\x00\x50", "80"},
		{ICMPv6Type, "mld-listener-reduction", "\x84", "mld-listener-done"},
		{TCPFlag, "fin | syn", "\x03", ""},
		{TCPFlag, "syn|fin", "\x03", "fin | syn"},
		{CTState, "established | new", "\x0a\x00\x00\x00", "new | established"},
		{CTState, "0x81", "\x81\x00\x00\x00", "invalid | 0x80"},
		{CTState, "0", "\x00\x00\x00\x00", "0x0"},
		{CTEvent, "new | label", "\x01\x04\x00\x00", ""},
		{CTLabel, "5", "\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", ""},
		{Mark, "0x10", "\x10\x00\x00\x00", "0x00000010"},
		{IfIndex, "lo", "\x01\x00\x00\x00", `"lo"`},
		{IfName, "eth0", "eth0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", `"eth0"`},
		{IfName, `"a.b"`, "a.b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", ""},
		{IfName, `eth\*`, "eth*\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", `"eth\*"`},
		{String, `"abc d"`, "abc d", ""},
		{Realm, "cosmos", "\x00\x00\x00\x00", `"cosmos"`},
		{ClassID, "1:2", "\x02\x00\x01\x00", ""},
		{ClassID, ":a", "\x0a\x00\x00\x00", "0:a"},
		{ClassID, "10", "\x0a\x00\x00\x00", "0:a"},
		{ClassID, "0x10002", "\x02\x00\x01\x00", "1:2"},
		{UID, "www-data", "\x21\x00\x00\x00", "33"},
		{GID, `"adm"`, "\x04\x00\x00\x00", "4"},
		{InetProto, "IPSEC-AH", "\x33", "ah"},
		{Hour, "8:5", "\xac\x71\x00\x00", `"08:05"`},
		{Hour, "90000", "\x90\x5f\x01\x00", "90000"},
		{Hour, "36h", "\xc0\xa8\x00\x00", `"12:00"`},
		{Date, `"1970-1-2 1:1"`, "\x00\xf8\x4e\xba\xe8\x51\x00\x00", `"1970-01-02 01:01:00"`},
		{Date, `"2500-01-01"`, "\x00\x00\x45\xb4\x11\xf0\x1b\xe8", `"2500-01-01 00:00:00"`},
		{DSCP, "be", "\x00", "cs0"},
		{PktType, "unicast", "\x00", "host"},
		{Day, "Monday", "\x01", `"Monday"`},
		{Time, "1h30m", "\xc0\x65\x52\x00", ""},
		{Time, "90", "\x90\x5f\x01\x00", "1m30s"},
		{Time, "1500ms", "\xdc\x05\x00\x00", "1s500ms"},
		{Hour, `"12:30"`, "\xc8\xaf\x00\x00", ""},
		{Hour, "00:00:01", "\x01\x00\x00\x00", `"00:00:01"`},
		{Date, `"1970-01-01 00:00:01"`, "\x00\xca\x9a\x3b\x00\x00\x00\x00", ""},
		{Integer, "0x1234", "\x12\x34", "4660"},
		{CGroupV2, "5", "\x05\x00\x00\x00\x00\x00\x00\x00", ""},
		{Verdict, "continue", "\xff\xff\xff\xff", ""},
		{Verdict, "jump a/b-c.d_e", "\xff\xff\xff\xfda/b-c.d_e", ""},
		{Verdict, "goto  pick-3", "\xff\xff\xff\xfcpick-3", "goto pick-3"},
	} {
		b, err := test.typ.Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.typ, err)
			continue
		}
		if string(b) != test.want {
			t.Errorf("%s %q packs to %q, want %q", test.typ, test.text, b, test.want)
		}
		format := test.format
		if format == "" {
			format = test.text
		}
		if got := test.typ.Format(b); got != format {
			t.Errorf("%s %q formats to %q, want %q", test.typ, b, got, format)
		}
		if again, err := test.typ.Parse(format); err != nil || string(again) != string(b) {
			t.Errorf("%s %q reads back as %q (%v), want %q", test.typ, format, again, err, b)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct {
		typ        *Type
		text, want string
	}{
		{IPv4Addr, "10.0.0.256", "is not an IPv4 address"},
		{IPv4Addr, "", "is not an IPv4 address"},
		{IPv4Addr, "::1", "is an IPv6 address"},
		{IPv6Addr, "1.2.3.4", "is an IPv4 address"},
		{IPv6Addr, "fe80::1%eth0", "without a zone"},
		{EtherAddr, "00:11:22:33:44", "is not an Ethernet address"},
		{LLAddr, strings.Repeat("00:", 32) + "00", "is not a link layer address"},
		{InetService, "65536", "the greatest is 65535"},
		{InetService, "nosuch", "a port from 0 to 65535 or a service name such as http"},
		{InetService, "", "unknown name"},
		{InetService, "99999999999999999999", "unknown name"},
		{InetProto, "tcpp", "a protocol name such as tcp, udp or sctp"},
		{CTState, "established | foo", "invalid, new, established, related, untracked"},
		{CTDir, "forth", "a number or one of original, reply"},
		{UID, "alice", "users and groups that every Debian system has"},
		{IfIndex, "eth0", "interface number"},
		{Realm, "x", "not read"},
		{Boolean, "true", "exists, missing"},
		{Mark, "0x100000000", "the greatest is 4294967295"},
		{IfName, "eth0123456789abcd", "1 to 15 bytes"},
		{IfName, "a\tb", "without quotes"},
		{IfName, "eth*", "wildcard"},
		{IfName, "", "1 to 15 bytes"},
		{String, "a\x01", "control character"},
		{String, strings.Repeat("x", 65), "want 1 to 64"},
		{Time, "5", ""},
		{Time, "5x", "is not a time"},
		{Time, "1m1h", "is not a time"},
		{Time, "100d", "out of range"},
		{ClassID, "x", "is not a traffic class"},
		{CTLabel, "128", "0 to 127"},
		{Hour, "25:00", "is not a time of day"},
		{Date, "yesterday", "is not a date"},
		{Verdict, "accept x", "unexpected"},
		{Verdict, "goto", "requires the name of a chain"},
		{Verdict, "goto 1x", "unexpected '1'"},
		{Verdict, "allow", "want accept, drop"},
		{Verdict, "goto " + strings.Repeat("x", 256), "want 1 to 255"},
	} {
		b, err := test.typ.Parse(test.text)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s %q: %v", test.typ, test.text, err)
		case test.want != "" && err == nil:
			t.Errorf("%s %q packs to %q, want an error", test.typ, test.text, b)
		case test.want != "" && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s %q: error %q, want %q in it", test.typ, test.text, err, test.want)
		case test.want != "" && !strings.HasPrefix(err.Error(), "parse "):
			t.Errorf("%s %q: error %q does not say what failed", test.typ, test.text, err)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, name := range Names() {
		typ, ok := Lookup(name)
		if !ok || typ.Name != name || typ.String() != name {
			t.Errorf("Lookup(%s) gives %v", name, typ)
		}
		if by, ok := ByID(typ.ID); !ok || by != typ {
			t.Errorf("ByID(%d) gives %v, want %s", typ.ID, by, typ)
		}
	}
	for _, name := range []string{"", "ipv4", "ct_label", "date"} {
		if typ, ok := Lookup(name); ok {
			t.Errorf("Lookup(%s) gives %v", name, typ)
		}
	}
	if typ, ok := ByID(43); !ok || typ != Date {
		t.Errorf("ByID(43) gives %v", typ)
	}
	if _, ok := ByID(0); ok {
		t.Error("ByID(0) gives a type")
	}
}

// TestSymbols checks that every name packs and that the name that is printed
// packs to the same value.
func TestSymbols(t *testing.T) {
	for id := uint32(1); id < 47; id++ {
		typ, ok := ByID(id)
		if !ok {
			t.Errorf("no type %d", id)
			continue
		}
		for _, s := range typ.Symbols {
			b, err := typ.Parse(s.Name)
			if err != nil {
				t.Error(err)
				continue
			}
			if again, err := typ.Parse(typ.Format(b)); err != nil || string(again) != string(b) {
				t.Errorf("%s %s reads back as %q (%v)", typ, s.Name, again, err)
			}
		}
	}
}

// TestSymbolTable reads each line of symbols.txt as text of its datatype.
func TestSymbolTable(t *testing.T) {
	types := make(map[string]*Type)
	for id := uint32(1); id < 47; id++ {
		typ, _ := ByID(id)
		types[typ.Name] = typ
	}
	for line := range strings.Lines(symbolText) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		typ := types[strings.TrimSuffix(fields[0], "_alias")]
		if typ == nil || len(fields) != 3 {
			t.Errorf("line %q", line)
			continue
		}
		want, err := strconv.ParseUint(fields[2], 0, 64)
		if got, parseErr := typ.ParseUint(fields[1]); err != nil || parseErr != nil || got != want {
			t.Errorf("%s %s is %d (%v, %v), want %s", typ, fields[1], got, err, parseErr, fields[2])
		}
	}
}

func TestFormatOfOtherBytes(t *testing.T) {
	for id := uint32(1); id < 47; id++ {
		typ, _ := ByID(id)
		for n := range 20 {
			typ.Format(make([]byte, n))
			typ.Format([]byte(strings.Repeat("\xff", n)))
			typ.FormatNumber([]byte(strings.Repeat("\xff", n)))
		}
	}
	if got := IPv4Addr.Format([]byte("abc")); got != "0x616263" {
		t.Errorf("three bytes format to %s", got)
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1d2h3m4s5ms": 26*time.Hour + 3*time.Minute + 4*time.Second + 5*time.Millisecond,
		"500ms":       500 * time.Millisecond,
		"3h":          3 * time.Hour,
		"4294967295":  math.MaxUint32 * time.Second,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%s) = %v, %v, want %v", text, got, err, want)
		}
		if back, err := ParseDuration(FormatDuration(got)); err != nil || back != got {
			t.Errorf("%s reads back as %v, %v", FormatDuration(got), back, err)
		}
	}
	for _, text := range []string{"", "s", "1", "-1s", "1s1s", "1s2m", "1.5s", "4294967295d4294967295h", "1y"} {
		if d, err := ParseDuration(text); err == nil && text != "1" {
			t.Errorf("ParseDuration(%q) = %v", text, d)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "_a": true, ".a": true, "a/b-c.d_e9": true, strings.Repeat("x", 255): true,
		"": false, "1a": false, "-a": false, "a b": false, "a\\b": false, "a@": false, "ä": false, strings.Repeat("x", 256): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"10.0.0.1", "::1", "tcp", "80", "0x10", "new | established", "1h30m", "eth0", `"x"`, "goto a", "1:2", "00:11:22:33:44:55"} {
		for id := range uint32(47) {
			f.Add(id, text)
		}
	}
	f.Fuzz(func(t *testing.T, id uint32, text string) {
		typ, ok := ByID(id)
		if !ok {
			return
		}
		b, err := typ.Parse(text)
		if err != nil {
			if b == nil || len(b) != 0 {
				t.Fatalf("%s %q: an error, but the result %q", typ, text, b)
			}
			return
		}
		if n := typ.Len(); n != 0 && len(b) != n {
			t.Fatalf("%s %q packs to %d bytes", typ, text, len(b))
		}
		again, err := typ.Parse(typ.Format(b))
		if err != nil || string(again) != string(b) {
			t.Fatalf("%s %q packs to %q, prints as %q, reads back as %q (%v)", typ, text, b, typ.Format(b), again, err)
		}
	})
}

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

// Names returns the names that Lookup knows, in order of their numbers.
func Names() []string {
	names := make([]string, len(declarable))
	for i, t := range declarable {
		names[i] = t.Name
	}
	return names
}
