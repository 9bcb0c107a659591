package set

import (
	"fmt"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
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
	err := attr.Fields{
		attr.Always(unix.NFTA_SET_NAME, &w.Name), attr.Always(unix.NFTA_SET_FLAGS, &w.Flags),
		attr.Always(unix.NFTA_SET_KEY_TYPE, &w.KeyID), attr.Always(unix.NFTA_SET_KEY_LEN, &w.KeyLen),
		attr.Always(unix.NFTA_SET_DATA_TYPE, &w.DataID), attr.Always(unix.NFTA_SET_DATA_LEN, &w.DataLen),
		attr.Always(unix.NFTA_SET_POLICY, &w.Policy), attr.Always(unix.NFTA_SET_TIMEOUT, &w.Timeout),
		attr.Always(unix.NFTA_SET_GC_INTERVAL, &w.GCInterval), attr.Always(unix.NFTA_SET_USERDATA, &w.UserData),
	}.Read(replies[0])
	if err != nil {
		t.Fatal(err)
	}
	desc, _ := attr.Find(replies[0], unix.NFTA_SET_DESC)
	for r := desc.Nested(); r.Next(); {
		switch r.Type() {
		case unix.NFTA_SET_DESC_SIZE:
			w.Size = r.Uint32BE()
		case 2: // NFTA_SET_DESC_CONCAT
			for list := r.Nested(); list.Next(); {
				for field := list.Nested(); field.Next(); {
					w.Fields = append(w.Fields, field.Uint32BE())
				}
			}
		}
	}
	return w
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
		elements, _ := attr.Find(reply, unix.NFTA_SET_ELEM_LIST_ELEMENTS)
		for r := elements.Nested(); r.Next(); {
			out = append(out, decodeElem(t, r.Bytes()))
		}
	}
	return out
}

func decodeElem(t *testing.T, b []byte) wireElem {
	t.Helper()
	var key, end, data, verdict, userData []byte
	var timeout uint64
	var e wireElem
	value := func(to *[]byte) attr.Fields {
		return attr.Fields{attr.Always(unix.NFTA_DATA_VALUE, to), attr.Always(unix.NFTA_DATA_VERDICT, &verdict)}
	}
	err := attr.Fields{
		attr.Always(unix.NFTA_SET_ELEM_FLAGS, &e.Flags), attr.Always(unix.NFTA_SET_ELEM_TIMEOUT, &timeout),
		attr.Always(unix.NFTA_SET_ELEM_KEY, value(&key)), attr.Always(10, value(&end)), // NFTA_SET_ELEM_KEY_END
		attr.Always(unix.NFTA_SET_ELEM_DATA, value(&data)), attr.Always(unix.NFTA_SET_ELEM_USERDATA, &userData),
	}.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	e.Key, e.KeyEnd, e.Data, e.UserData = string(key), string(end), string(data), string(userData)
	if verdict != nil {
		var v Verdict
		f := attr.Fields{attr.Always(unix.NFTA_VERDICT_CODE, &v.Code), attr.Always(unix.NFTA_VERDICT_CHAIN, &v.Chain)}
		if err := f.Read(verdict); err != nil {
			t.Fatal(err)
		}
		e.Data = VerdictData(v)
	}
	if timeout > 0 {
		e.Timeout = fmt.Sprint(time.Duration(timeout) * time.Millisecond)
	}
	return e
}

// wireElems is how nft stores elements: two for an interval of one part, the
// end one after it being exclusive and without data.
func (s *Set) wireElems(t *testing.T, elems []Element) []wireElem {
	t.Helper()
	var out []wireElem
	for _, e := range elems {
		open := s.Flags&(FlagInterval|FlagConcat) == FlagInterval && Next(e.KeyEnd) == ""
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
			out = append(out, wireElem{Flags: unix.NFT_SET_ELEM_INTERVAL_END, Key: Next(e.KeyEnd)})
		}
	}
	return out
}
