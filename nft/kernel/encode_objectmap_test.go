package kernel

import (
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// TestObjectMapRoundTrip encodes maps of objects with their elements and decodes
// the same bytes as if the kernel had returned them.
func TestObjectMapRoundTrip(t *testing.T) {
	for _, flags := range [][]string{nil, {"interval"}} {
		s, err := set.CompileMap(nft.FamilyInet, &nft.Map{Name: "m", Type: "inet_service : counter", Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		var elements []set.Element
		for _, e := range []nft.Element{{Key: "22", Value: "ssh"}, {Key: "80", Value: "web", Comment: "x"}} {
			packed, err := s.Pack(e)
			if err != nil {
				t.Fatal(err)
			}
			elements = append(elements, packed)
		}
		table := nft.TableID{Family: nft.FamilyInet, Name: "t"}
		batch, err := Encode([]Op{AddSet{Table: table, Set: s}, AddElements{Table: table, Set: s, Elements: elements}})
		if err != nil {
			t.Fatal(err)
		}
		var got *set.Set
		d := newElementDecoder(s)
		for b := batch; len(b) > 0; {
			h, payload, rest, ok := nextMessage(b)
			if !ok {
				t.Fatal("malformed batch")
			}
			b = rest
			switch h.typ {
			case msgType(unix.NFT_MSG_NEWSET):
				got, err = decodeSet(reply{nft.FamilyInet, payload[genLen:]})
			case msgType(unix.NFT_MSG_NEWSETELEM):
				err = d.message(reply{nft.FamilyInet, payload[genLen:]})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got == nil || !got.Equal(s) {
			t.Errorf("set %+v: want %+v", got, s)
		}
		if back := d.finish(); !reflect.DeepEqual(back, elements) {
			t.Errorf("elements %+v: want %+v", back, elements)
		}
		elements[0].Data = ""
		if _, err := Encode([]Op{AddElements{Table: table, Set: s, Elements: elements}}); err == nil {
			t.Error("an element without an object was encoded")
		}
	}
}
