package compile

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/userdata"
)

// TestRawOptionSet leaves out the type of a raw option: nft 1.0.6 stores one
// that it aborts on when it lists the set.
func TestRawOptionSet(t *testing.T) {
	const keyTypeOf = 3 // NFTNL_UDATA_SET_KEY_TYPEOF
	for text, stored := range map[string]bool{
		"tcp option @2,24,8 { 1, 2 }": false, "tcp option @200,16,16 { 1, 2 }": false, "tcp option @2,16,16 { 1, 2 }": true,
	} {
		r, err := CompileRule(nft.FamilyInet, nft.Rule{Text: text}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := userdata.FindRecord(r.Anonymous[0].Set.UserData, keyTypeOf); ok != stored {
			t.Errorf("%s: the type is stored: %v, want %v", text, ok, stored)
		}
	}
}

// TestExtensionNames tests that each error has the possible names.
func TestExtensionNames(t *testing.T) {
	for text, want := range map[string]string{
		"exthdr srh exists": "hbh, rt, frag, dst, mh",
		"ip6 saddr . ip6 daddr . ip6 saddr . ip6 daddr . tcp dport { fe80::1 . fe80::1 . fe80::1 . fe80::1 . 80 }": "68 bytes",
		"rt2 addr ::1":             "no field",
		"srh sid[3] ::1":           "sid[1], sid[2]",
		"srh sid[0] ::1":           "want a number from 1",
		"rt0 addr[0] ::1":          "want a number from 1",
		"ip option bogus exists":   "lsrr, rr, ssrr, ra",
		"tcp option maxseg kind 2": "length, size, exists or missing",
		"tcp option 3 count 5":     "length, exists or missing",
		"tcp option 200 length 1":  "exists or missing",
		"sctp chunk data a 3":      "tsn, stream, ssn, ppid",
		"tcp option @2,0,129 1":    "128",
		"tcp option @2,7,122 1":    "128",
		"tcp option @2,321,8 1":    "320",
	} {
		_, err := CompileRule(nft.FamilyInet, nft.Rule{Text: text}, nil)
		var e *syntax.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, want) {
			t.Errorf("%s: error %v, want %q in it", text, err, want)
		}
	}
}
