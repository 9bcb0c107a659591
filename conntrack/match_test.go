package conntrack

import (
	"encoding/json"
	"net/netip"
	"testing"
)

func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func aps(s ...string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, v := range s {
		out = append(out, ap(v))
	}
	return out
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// localsOf returns the local destinations of a namespace.
func localsOf(prefixes ...string) (l locals) {
	for _, p := range prefixes {
		l.add(netip.MustParsePrefix(p))
	}
	return l
}

// matchTest is a flow that is removed, or not.
type matchTest struct {
	name, dst, reply string
	want             bool
}

func testMatcher(t *testing.T, m *matcher, tests []matchTest) {
	t.Helper()
	for _, tt := range tests {
		if got := m.remove(flow{dst: ap(tt.dst), reply: ap(tt.reply)}); got != tt.want {
			t.Errorf("%s: stale(%s -> %s) = %v, want %v", tt.name, tt.dst, tt.reply, got, tt.want)
		}
	}
}

func TestStaleMatcher(t *testing.T) {
	m := matchChanges([]Stale{
		{Addr: netip.MustParseAddr("10.96.0.10"), Port: 53, Removed: aps("10.1.0.1:5353")},
		{Addr: netip.MustParseAddr("::ffff:10.96.0.10"), Port: 53, Removed: aps("10.1.0.9:5353")},
		{Addr: netip.MustParseAddr("10.96.0.11"), Port: 53, First: true},
		{Port: 30053, Removed: aps("10.1.0.1:5353")},
		{Port: 30054, First: true},
		{Addr: netip.IPv4Unspecified(), Port: 30055, First: true, At: map[netip.Addr]struct{}{netip.MustParseAddr("198.51.100.7"): {}}},
		{Addr: netip.IPv6Unspecified(), Port: 30056, First: true, Removed: aps("[fd00:1::1]:5353")},
		{Addr: netip.MustParseAddr("10.96.0.99"), Port: 53},
	}, false)
	m.local = localsOf("192.0.2.1/32", "2001:db8::1/128", "203.0.113.0/24")
	testMatcher(t, m, []matchTest{
		{"backend gone", "10.96.0.10:53", "10.1.0.1:5353", true},
		{"mapped address joins the plain one", "10.96.0.10:53", "10.1.0.9:5353", true},
		{"backend stays", "10.96.0.10:53", "10.1.0.2:5353", false},
		{"same backend, other port", "10.96.0.10:53", "10.1.0.1:5354", false},
		{"other port of the vip", "10.96.0.10:54", "10.1.0.1:5353", false},
		{"untranslated, but routed before", "10.96.0.10:53", "10.96.0.10:53", false},
		{"untranslated", "10.96.0.11:53", "10.96.0.11:53", true},
		{"translated, none gone", "10.96.0.11:53", "10.1.0.1:5353", false},
		{"nothing stale", "10.96.0.99:53", "10.96.0.99:53", false},
		{"node port", "192.0.2.1:30053", "10.1.0.1:5353", true},
		{"node port of an address that has gone", "198.51.100.1:30053", "10.1.0.1:5353", true},
		{"node port number of another host", "198.51.100.1:30053", "198.51.100.1:30053", false},
		{"node port number of a host that is a backend", "10.1.0.1:30053", "10.1.0.1:30053", false},
		{"node port of a range, untranslated", "203.0.113.9:30054", "203.0.113.9:30054", true},
		{"node port of another host, untranslated", "198.51.100.1:30054", "198.51.100.1:30054", false},
		{"node port elsewhere, untranslated", "198.51.100.7:30055", "198.51.100.7:30055", true},
		{"node port elsewhere, another port", "198.51.100.7:30054", "198.51.100.7:30054", false},
		{"node port of the other family", "[2001:db8::1]:30053", "[2001:db8::1]:30053", false},
		{"node port of IPv4, untranslated", "192.0.2.1:30055", "192.0.2.1:30055", true},
		{"node port of IPv4, untranslated in the other family", "[2001:db8::1]:30055", "[2001:db8::1]:30055", false},
		{"node port of IPv6, untranslated", "[2001:db8::1]:30056", "[2001:db8::1]:30056", true},
		{"node port of IPv6, backend gone", "[2001:db8::1]:30056", "[fd00:1::1]:5353", true},
		{"node port of IPv6, untranslated in the other family", "192.0.2.1:30056", "192.0.2.1:30056", false},
		{"node port, untranslated, both families", "[2001:db8::1]:30054", "[2001:db8::1]:30054", true},
	})
}

func TestLiveMatcher(t *testing.T) {
	m := matchDestinations([]Destination{
		{Addr: netip.MustParseAddr("10.96.0.10"), Port: 53, Backends: aps("10.1.0.1:5353", "10.1.0.2:5353")},
		{Addr: netip.MustParseAddr("192.0.2.1"), Port: 30053, Backends: aps("10.1.0.3:5353")},
		{Port: 30053, Backends: aps("10.1.0.1:5353")},
		{Addr: netip.MustParseAddr("10.96.0.12"), Port: 53},
	})
	m.local = localsOf("192.0.2.1/32", "192.0.2.2/32", "2001:db8::1/128")
	testMatcher(t, m, []matchTest{
		{"live backend", "10.96.0.10:53", "10.1.0.2:5353", false},
		{"other backend", "10.96.0.10:53", "10.1.0.3:5353", true},
		{"untranslated", "10.96.0.10:53", "10.96.0.10:53", true},
		{"other port", "10.96.0.10:54", "10.1.0.3:5353", false},
		{"other address", "10.96.0.11:53", "10.1.0.3:5353", false},
		{"no backends", "10.96.0.12:53", "10.1.0.1:5353", true},
		{"address decides before port", "192.0.2.1:30053", "10.1.0.3:5353", false},
		{"address decides before port, stale", "192.0.2.1:30053", "10.1.0.1:5353", true},
		{"node port, live", "192.0.2.2:30053", "10.1.0.1:5353", false},
		{"node port, stale", "192.0.2.2:30053", "10.1.0.3:5353", true},
		{"node port of an address that has gone, stale", "198.51.100.1:30053", "10.1.0.3:5353", true},
		{"node port of an address that has gone, live", "198.51.100.1:30053", "10.1.0.1:5353", false},
		{"node port number of another host", "198.51.100.1:30053", "198.51.100.1:30053", false},
		{"node port of the other family", "[2001:db8::1]:30053", "[2001:db8::1]:30053", false},
	})
}

// The aggregator stores changes as JSON. Older versions must be able to read them.
func TestChangeJSON(t *testing.T) {
	in := Stale{Addr: ap("10.96.0.1:53").Addr(), Port: 53, Removed: aps("10.1.0.1:5353"), First: true}
	const want = `{"Addr":"10.96.0.1","Port":53,"Gone":["10.1.0.1:5353"],"Unrouted":true}`
	b, err := json.Marshal(in)
	if err != nil || string(b) != want {
		t.Errorf("Marshal = %s, %v; want %s", b, err, want)
	}
}
