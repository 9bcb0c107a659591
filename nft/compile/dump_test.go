package compile

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// TestDumpComment writes comments in the notation of `nft --debug=netlink`.
func TestDumpComment(t *testing.T) {
	for comment, want := range map[string]string{"": "", "x": "  userdata = { \\x00\\x02x\\x00 }\n"} {
		r, err := CompileRule(nft.FamilyIP, nft.Rule{Text: "accept", Comment: comment}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.DumpComment(); got != want {
			t.Errorf("comment %q: DumpComment = %q, want %q", comment, got, want)
		}
	}
}

// TestWrites compares elements with the padded data of a rule.
func TestWrites(t *testing.T) {
	e := &set.Element{Data: "\x00\x50"}
	for _, tt := range []struct {
		w    Write
		want bool
	}{{Write{Data: "\x00\x50\x00\x00"}, true}, {Write{Data: "\x00\x51\x00\x00"}, false}, {Write{Any: true}, true}} {
		if got := tt.w.Writes(e); got != tt.want {
			t.Errorf("%+v writes %+v: %t, want %t", tt.w, e, got, tt.want)
		}
	}
}
