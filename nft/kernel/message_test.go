package kernel

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// FuzzDecode passes arbitrary bytes to every decoder. None may panic, and the elements of
// an interval set must be ordered.
func FuzzDecode(f *testing.F) {
	s := &set.Set{Name: "s", Key: set.Type{ID: 7, Len: 4}, Map: true, Verdict: true, Flags: unix.NFT_SET_MAP | unix.NFT_SET_INTERVAL}
	data := "\x00\x00\x00\x00"
	batch, err := Encode([]Op{
		AddTable{Table: testTable(), Comment: "c"},
		AddChain{Table: testTable(), Chain: &object.Chain{Name: "b", Comment: "c", Base: &object.Base{Type: "nat", Device: "eth0"}}},
		AddSet{Table: testTable(), Set: s},
		AddElements{Table: testTable(), Set: s, Elements: []set.Element{
			{Key: "abcd", KeyEnd: "abce", Data: data, Comment: "c", Timeout: 1e9}, {Key: "bbcd", KeyEnd: "\xff\xff\xff\xff", Data: data + "chain"},
		}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(batch)
	for b := batch; ; {
		_, payload, rest, ok := nextMessage(b)
		if !ok {
			break
		}
		f.Add(payload)
		f.Add(b[:len(b)-len(rest)-1])
		b = rest
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := watcher{owns: func(nft.TableID) bool { return true }}
		_ = w.datagram(b)
		_, _ = parseError(unix.NLM_F_ACK_TLVS, b)
		_, _ = parseError(unix.NLM_F_ACK_TLVS|unix.NLM_F_CAPPED, b)
		_ = elementAt(b, len(b)/2)
		_ = doneError(b)
		_, _ = decodeHandle(b)
		for rest := b; ; {
			_, payload, after, ok := nextMessage(rest)
			if !ok {
				break
			}
			decodeAll(t, s, payload)
			rest = after
		}
		decodeAll(t, s, b)
	})
}

// decodeAll runs all decoders of objects.
func decodeAll(t *testing.T, declared *set.Set, payload []byte) {
	t.Helper()
	if len(payload) < genLen {
		return
	}
	m := reply{family: nft.Family(payload[0]), attrs: payload[genLen:]}
	_, _ = decodeTable(m)
	_, _ = decodeChain(m)
	_, _ = decodeRule(m)
	if s, err := decodeSet(m); err == nil {
		_ = describe(AddSet{Table: testTable(), Set: s}, -1)
	}
	_, _ = m.table()
	plain := &set.Set{Key: declared.Key}
	for _, s := range []*set.Set{declared, plain} {
		d := newElementDecoder(s)
		if d.message(m) != nil {
			continue
		}
		d.dedupe()
		for i, e := range d.finish() {
			if s == declared && e.Key != "" && (len(e.KeyEnd) != len(e.Key) || e.KeyEnd < e.Key && i+1 == len(d.elements)) {
				t.Errorf("element %d: key %x end %x", i, e.Key, e.KeyEnd)
			}
		}
	}
}
