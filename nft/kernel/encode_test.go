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
)

func TestOnlyTheEndIsAcknowledged(t *testing.T) {
	set, elements := loadEndpoints(t, 5000)
	ops := []Op{AddTable{Table: testTable()}, AddSet{Table: testTable(), Set: set}, AddElements{Table: testTable(), Set: set, Elements: elements}}
	batch, err := Encode(ops)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := e.batch([]Op{AddTable{Table: testTable()}, AddChain{Table: testTable(), Chain: chain("c")}}); err != nil {
		t.Fatal(err)
	}
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
	set, elements := loadEndpoints(t, 2000)
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

func TestBaseChainOfOwnTableIsNotFresh(t *testing.T) {
	id := nft.TableID{Family: nft.FamilyIP, Name: "weft"}
	base := AddChain{Table: id, Chain: &object.Chain{Name: "b", Base: &object.Base{Type: "filter"}}}
	own := func(nft.TableID) (protected, ok bool) { return false, true }
	e := encoder{buffer: buffer{seq: 1}, own: own}
	if err := e.batch([]Op{AddTable{Table: id}, base}); err != nil {
		t.Fatal(err)
	}
	if _, fresh := e.tails[chainID{id, "b"}]; fresh {
		t.Error("a base chain of an existing table counts as new")
	}
	e = encoder{buffer: buffer{seq: 1}, own: own}
	if err := e.batch([]Op{DeleteTable{Table: id}, AddTable{Table: id}, base}); err != nil {
		t.Fatal(err)
	}
	if _, fresh := e.tails[chainID{id, "b"}]; !fresh {
		t.Error("a base chain of a new table does not count as new")
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
