package kernel

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

func TestOnlyTheEndIsAcknowledged(t *testing.T) {
	set, elements := loadEndpoints(5000)
	ops := []Op{AddTable{Table: testTable()}, AddSet{Table: testTable(), Set: set}, AddElements{Table: testTable(), Set: set, Elements: elements}}
	batch := nfttest.Must(Encode(ops))
	again, err := Encode(ops)
	if err != nil || !bytes.Equal(batch, again) {
		t.Error("the same ops encode to other bytes")
	}
	var types []uint16
	seq := uint32(0)
	for b := batch; len(b) > 0; {
		h, payload, rest, ok := nextMessage(b)
		if !ok {
			t.Fatalf("malformed message at %d", len(batch)-len(b))
		}
		if seq++; h.seq != seq {
			t.Errorf("sequence number %d, want %d", h.seq, seq)
		}
		if ack := h.flags&unix.NLM_F_ACK != 0; ack != (h.typ == unix.NFNL_MSG_BATCH_END) {
			t.Errorf("message %d of type %#x: acknowledged %v", seq, h.typ, ack)
		}
		if h.typ == msgType(unix.NFT_MSG_NEWSETELEM) {
			for a := attr.NewReader(payload[genLen:]); a.Next(); {
				if len(a.Bytes())+attr.HeaderLen > attr.MaxLen {
					t.Errorf("message %d: list of %d bytes", seq, len(a.Bytes()))
				}
			}
		}
		types = append(types, h.typ)
		b = rest
	}
	if types[0] != unix.NFNL_MSG_BATCH_BEGIN || types[len(types)-1] != unix.NFNL_MSG_BATCH_END || len(types) < 7 {
		t.Errorf("types = %x", types)
	}
}

func TestLastMessageIsAcknowledgedOnOldKernels(t *testing.T) {
	e := encoder{buffer: buffer{seq: 1}}
	nfttest.NoError(t, e.batch([]Op{AddTable{Table: testTable()}, AddChain{Table: testTable(), Chain: chain("c")}}))
	for i, want := range []bool{false, false, true, false} {
		h, _, _, _ := nextMessage(e.buf[e.messages[i].offset:])
		if got := h.flags&unix.NLM_F_ACK != 0; got != want {
			t.Errorf("message %d: acknowledged %v, want %v", i, got, want)
		}
	}
}

func TestElementAt(t *testing.T) {
	s := &set.Set{Name: "s", Key: set.Type{ID: 7, Len: 4}, Flags: unix.NFT_SET_INTERVAL}
	e := encoder{}
	elements := []set.Element{{Key: "aaaa", KeyEnd: "aaab"}, {Key: "bbbb"}, {Key: "cccc", KeyEnd: "\xff\xff\xff\xff"}}
	if _, err := e.encode(AddElements{Table: testTable(), Set: s, Elements: elements}); err != nil {
		t.Fatal(err)
	}
	e.closeLast()
	for i, el := range elements {
		if got := elementAt(e.buf, bytes.Index(e.buf, []byte(el.Key))); got != i {
			t.Errorf("element at %s = %d, want %d", el.Key, got, i)
		}
	}
	if got := elementAt(e.buf, bytes.Index(e.buf, []byte("bbbc"))); got != 1 {
		t.Errorf("element at the end of the second = %d, want 1", got)
	}
	for _, off := range []int{-1, 0, headerLen + genLen, len(e.buf), len(e.buf) + 1000} {
		if got := elementAt(e.buf, off); got != -1 {
			t.Errorf("element at %d = %d, want -1", off, got)
		}
	}
}

func TestEncodeDoesNotAllocatePerElement(t *testing.T) {
	set, elements := loadEndpoints(2000)
	ops := []Op{AddElements{Table: testTable(), Set: set, Elements: elements}}
	n := testing.AllocsPerRun(10, func() {
		if _, err := Encode(ops); err != nil {
			t.Fatal(err)
		}
	})
	if n > 20 {
		t.Errorf("%.0f allocations for 2000 elements", n)
	}
}

// Before Linux 6.10 the kernel does not answer a batch without messages.
func TestBatchWithoutMessagesIsNotSent(t *testing.T) {
	s := &set.Set{Name: "s", Key: set.Type{ID: 7, Len: 4}}
	c := &Conn{tables: ownTables{protected: map[nft.TableID]bool{testTable(): true}}}
	ops := []Op{AddElements{Table: testTable(), Set: s}}
	if stats, err := c.Commit(ops); err != nil || stats.Elements != 0 || c.gen != 0 {
		t.Errorf("Commit = %+v, %v, generation %d", stats, err, c.gen)
	}
	if err := c.Check(ops); err != nil {
		t.Errorf("Check = %v", err)
	}
}

// The kernel reports a used-up quota with port 0 and without the end of a transaction.
func TestQuotaEventIsNotPending(t *testing.T) {
	w := watcher{portID: 1, owns: func(nft.TableID) bool { return true }}
	b := appendHeader(nil, msgType(unix.NFT_MSG_NEWOBJ), 0, 0, uint8(nft.FamilyIP), 0)
	b = attr.AppendString(b, nftaTable, "weft")
	closeMessage(b, 0)
	if changes := w.datagram(b); len(changes) != 0 || len(w.pending) != 0 {
		t.Errorf("changes %+v, pending %+v", changes, w.pending)
	}
}

// TestAttributeThatIsTooLong tests that the op is named, and that the batch is not sent.
func TestAttributeThatIsTooLong(t *testing.T) {
	_, err := Encode([]Op{AddTable{Table: testTable()}, AddChain{Table: testTable(), Chain: chain(strings.Repeat("x", 1<<16))}})
	var be *BatchError
	if !errors.As(err, &be) || be.Index != 1 || !errors.As(err, new(*attr.TooLongError)) {
		t.Errorf("error %v, want a TooLongError of op 1", err)
	}
}

// errorOf returns the error of a decoder.
func errorOf[T any](decode func(reply) (T, error), attrs []byte) error {
	_, err := decode(reply{attrs: attrs})
	return err
}

// TestDecodeMalformed passes replies to the decoders in which a usual attribute is missing or has
// another size.
func TestDecodeMalformed(t *testing.T) {
	short := func(typ uint16) []byte { return attr.AppendBytes(nil, typ, []byte{1, 2}) }
	nested := func(b []byte, types ...uint16) []byte {
		for i := len(types) - 1; i >= 0; i-- {
			b = attr.AppendBytes(nil, types[i]|unix.NLA_F_NESTED, b)
		}
		return b
	}
	_, noHeader := parseReply([]byte{1})
	_, noReply := decodeHandle(nil)
	_, noHandle := decodeHandle(make([]byte, genLen))
	_, shortHandle := decodeHandle(append(make([]byte, genLen), short(unix.NFTA_RULE_HANDLE)...))
	for name, err := range map[string]error{
		"reply without nfgenmsg": noHeader, "handle: no nfgenmsg": noReply, "handle: missing": noHandle, "handle: size": shortHandle,
		"table: owner":       errorOf(decodeTable, short(nftaTableOwner)),
		"chain: hook":        errorOf(decodeChain, nested(short(unix.NFTA_HOOK_HOOKNUM), unix.NFTA_CHAIN_HOOK)),
		"chain: devices":     errorOf(decodeChain, nested([]byte{1, 2, 3}, unix.NFTA_CHAIN_HOOK, nftaHookDevs)),
		"set: key length":    errorOf(decodeSet, short(unix.NFTA_SET_KEY_LEN)),
		"set: field length":  errorOf(decodeSet, nested(short(nftaSetFieldLen), unix.NFTA_SET_DESC, nftaSetDescConcat, unix.NFTA_LIST_ELEM)),
		"set: fields":        errorOf(decodeSet, nested([]byte{1}, unix.NFTA_SET_DESC, nftaSetDescConcat)),
		"object: type":       errorOf(decodeObject, short(unix.NFTA_OBJ_TYPE)),
		"flowtable: hook":    errorOf(decodeFlowtable, nested(short(nftaFlowtableHookNum), nftaFlowtableHook)),
		"flowtable: devices": errorOf(decodeFlowtable, nested([]byte{1, 2, 3}, nftaFlowtableHook, nftaFlowtableHookDevs)),
		"jump":               errorOf(decodeJump, short(unix.NFTA_RULE_HANDLE)),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
	if id, ok := (reply{family: nft.FamilyIP}).table(); ok {
		t.Errorf("table of a message without attributes = %s", id)
	}
}

// FuzzDecode passes arbitrary bytes to every decoder. None may panic, and the elements of
// an interval set must be ordered.
func FuzzDecode(f *testing.F) {
	s := &set.Set{Name: "s", Key: set.Type{ID: 7, Len: 4}, Map: true, Verdict: true, Flags: unix.NFT_SET_MAP | unix.NFT_SET_INTERVAL}
	data := "\x00\x00\x00\x00"
	batch := nfttest.Must(Encode([]Op{
		AddTable{Table: testTable(), Comment: "c"},
		AddChain{Table: testTable(), Chain: &object.Chain{Name: "b", Comment: "c", Base: &object.Base{Type: "nat", Device: "eth0"}}},
		AddSet{Table: testTable(), Set: s},
		AddElements{Table: testTable(), Set: s, Elements: []set.Element{
			{Key: "abcd", KeyEnd: "abce", Data: data, Comment: "c", Timeout: 1e9}, {Key: "bbcd", KeyEnd: "\xff\xff\xff\xff", Data: data + "chain"},
		}},
	}))
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
