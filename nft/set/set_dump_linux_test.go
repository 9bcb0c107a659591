package set

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

// wireSet is a set as the kernel describes it, without its table.
type wireSet struct {
	Name                     string
	Flags                    uint32
	KeyID, KeyLen            uint32
	DataID, DataLen          uint32
	Size, Policy, GCInterval uint32
	Timeout                  uint64
	Fields                   []uint32
	UserData                 []byte
}

// wire is the description that a declaration of ours should get.
func (s *Set) wire() wireSet {
	w := wireSet{
		Name: s.Name, Flags: s.Flags, KeyID: s.Key.ID, KeyLen: s.Key.Len,
		DataID: s.Data.ID, DataLen: s.Data.Len, Size: s.Size,
		GCInterval: uint32(s.GCInterval.Milliseconds()), Timeout: uint64(s.Timeout.Milliseconds()),
		UserData: s.UserData,
	}
	if s.Memory {
		w.Policy = 1
	}
	if s.Verdict {
		w.DataLen = 16 // sizeof(struct nft_verdict)
	}
	if s.Flags&FlagConcat != 0 {
		w.Fields = s.Key.Fields
	}
	return w
}

// wireElem is an element as the kernel describes it.
type wireElem struct {
	Flags            uint32
	Key, KeyEnd      string
	Data, UserData   string
	Timeout, Verdict string
}

// dumpSet returns the only set of table t.
func dumpSet(t *testing.T, ns *nfttest.NS, family nft.Family) wireSet {
	t.Helper()
	replies := ns.Dump(t, uint8(family), unix.NFT_MSG_GETSET, []netlink.Attribute{{Type: unix.NFTA_SET_TABLE, Data: []byte("t\x00")}})
	if len(replies) != 1 {
		t.Fatalf("table t has %d sets", len(replies))
	}
	var w wireSet
	ad, err := netlink.NewAttributeDecoder(replies[0])
	if err != nil {
		t.Fatal(err)
	}
	ad.ByteOrder = binary.BigEndian
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_SET_NAME:
			w.Name = ad.String()
		case unix.NFTA_SET_FLAGS:
			w.Flags = ad.Uint32()
		case unix.NFTA_SET_KEY_TYPE:
			w.KeyID = ad.Uint32()
		case unix.NFTA_SET_KEY_LEN:
			w.KeyLen = ad.Uint32()
		case unix.NFTA_SET_DATA_TYPE:
			w.DataID = ad.Uint32()
		case unix.NFTA_SET_DATA_LEN:
			w.DataLen = ad.Uint32()
		case unix.NFTA_SET_POLICY:
			w.Policy = ad.Uint32()
		case unix.NFTA_SET_TIMEOUT:
			w.Timeout = ad.Uint64()
		case unix.NFTA_SET_GC_INTERVAL:
			w.GCInterval = ad.Uint32()
		case unix.NFTA_SET_USERDATA:
			w.UserData = ad.Bytes()
		case unix.NFTA_SET_DESC:
			ad.Nested(w.decodeDesc)
		}
	}
	if err := ad.Err(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *wireSet) decodeDesc(ad *netlink.AttributeDecoder) error {
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_SET_DESC_SIZE:
			w.Size = ad.Uint32()
		case 2: // NFTA_SET_DESC_CONCAT
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					ad.Nested(func(ad *netlink.AttributeDecoder) error {
						for ad.Next() {
							w.Fields = append(w.Fields, ad.Uint32())
						}
						return nil
					})
				}
				return nil
			})
		}
	}
	return nil
}

// dumpElements returns the elements of set s of table t.
func dumpElements(t *testing.T, ns *nfttest.NS, family nft.Family) []wireElem {
	t.Helper()
	replies := ns.Dump(t, uint8(family), unix.NFT_MSG_GETSETELEM, []netlink.Attribute{
		{Type: unix.NFTA_SET_ELEM_LIST_TABLE, Data: []byte("t\x00")},
		{Type: unix.NFTA_SET_ELEM_LIST_SET, Data: []byte("s\x00")},
	})
	var out []wireElem
	for _, reply := range replies {
		ad, err := netlink.NewAttributeDecoder(reply)
		if err != nil {
			t.Fatal(err)
		}
		ad.ByteOrder = binary.BigEndian
		for ad.Next() {
			if ad.Type() != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
				continue
			}
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					var e wireElem
					ad.Nested(e.decode)
					out = append(out, e)
				}
				return nil
			})
		}
		if err := ad.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func (e *wireElem) decode(ad *netlink.AttributeDecoder) error {
	value := func(dst *string) func(*netlink.AttributeDecoder) error {
		return func(ad *netlink.AttributeDecoder) error {
			for ad.Next() {
				switch ad.Type() {
				case unix.NFTA_DATA_VALUE:
					*dst = string(ad.Bytes())
				case unix.NFTA_DATA_VERDICT:
					ad.Nested(func(ad *netlink.AttributeDecoder) error {
						var v Verdict
						for ad.Next() {
							switch ad.Type() {
							case unix.NFTA_VERDICT_CODE:
								v.Code = int32(ad.Uint32())
							case unix.NFTA_VERDICT_CHAIN:
								v.Chain = ad.String()
							}
						}
						*dst = VerdictData(v)
						return nil
					})
				}
			}
			return nil
		}
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_SET_ELEM_FLAGS:
			e.Flags = ad.Uint32()
		case unix.NFTA_SET_ELEM_KEY:
			ad.Nested(value(&e.Key))
		case 10: // NFTA_SET_ELEM_KEY_END
			ad.Nested(value(&e.KeyEnd))
		case unix.NFTA_SET_ELEM_DATA:
			ad.Nested(value(&e.Data))
		case unix.NFTA_SET_ELEM_TIMEOUT:
			e.Timeout = fmt.Sprint(time.Duration(ad.Uint64()) * time.Millisecond)
		case unix.NFTA_SET_ELEM_USERDATA:
			e.UserData = string(ad.Bytes())
		}
	}
	return nil
}

// wireElems is how nft stores elements: two for an interval of one part, the
// end one after it being exclusive and without data.
func (s *Set) wireElems(t *testing.T, elems []Element) []wireElem {
	t.Helper()
	var out []wireElem
	for _, e := range elems {
		open := s.Flags&(FlagInterval|FlagConcat) == FlagInterval && next(e.KeyEnd) == ""
		ud, err := userdata.AppendElement(nil, e.Comment, open)
		if err != nil {
			t.Fatal(err)
		}
		w := wireElem{Key: e.Key, Data: e.Data, UserData: string(ud)}
		if e.Timeout > 0 {
			w.Timeout = fmt.Sprint(e.Timeout)
		}
		if s.Flags&FlagConcat != 0 {
			w.KeyEnd = e.KeyEnd
		}
		out = append(out, w)
		if s.Flags&(FlagInterval|FlagConcat) == FlagInterval && !open {
			out = append(out, wireElem{Flags: unix.NFT_SET_ELEM_INTERVAL_END, Key: next(e.KeyEnd)})
		}
	}
	return out
}

// next is the value after v, empty where there is none.
func next(v string) string {
	b := []byte(v)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return string(b)
		}
	}
	return ""
}
