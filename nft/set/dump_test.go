package set

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
)

// TestDump writes sets in the notation of `nft --debug=netlink`.
func TestDump(t *testing.T) {
	s, err := Compile(nft.FamilyIP, &nft.Set{
		Name: "s", Type: "ipv4_addr", Flags: []string{"interval"}, Timeout: time.Second, GCInterval: time.Minute, Size: 9, Policy: "memory",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.DumpDeclaration("t"), "s t 14 timeout 1000ms gc_interval 60000ms policy 1 size 9\n"; got != want {
		t.Errorf("DumpDeclaration = %q, want %q", got, want)
	}
	e, err := s.Pack(nft.Element{Key: "10.0.0.0/8", Comment: "x", Expires: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if e.Expires() != 500*time.Millisecond {
		t.Errorf("Expires = %s", e.Expires())
	}
	// An end, with the flag 1, comes before the interval and after it.
	got := s.DumpElements("t", []Element{e})
	if comment := `0 [end]  userdata = { \x00\x02x\x00 }`; !strings.Contains(got, comment) || strings.Count(got, " : 1 [end]") != 2 {
		t.Errorf("DumpElements = %q, want two ends, and %s", got, comment)
	}
	if got := s.DumpElements("t", nil); got != "" {
		t.Errorf("DumpElements of none = %q", got)
	}
}
