package kernel

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/nfttest"
	"github.com/weft-proxy/weft/nft/set"
)

func TestDeleteOfAnElementThatRanOut(t *testing.T) {
	nfttest.RequireKernel(t, 6, 3) // NFT_MSG_DESTROYSETELEM
	for _, decl := range []nft.Set{
		{Name: "hash", Type: "ipv4_addr", Flags: []string{"timeout"}},
		{Name: "ranges", Type: "ipv4_addr", Flags: []string{"interval", "timeout"}},
		{Name: "concat", Type: "ipv4_addr . inet_service", Flags: []string{"interval", "timeout"}},
	} {
		t.Run(decl.Name, func(t *testing.T) {
			ns := nfttest.New(t)
			c := open(t, ns, Config{})
			id, set := testTable(), setOf(t, decl)
			keys := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
			for i := range keys {
				if decl.Name == "concat" {
					keys[i] += " . 80"
				}
			}
			e := pack(t, set, keys...)
			e[0].Timeout, e[1].Timeout = 50*time.Millisecond, time.Hour
			commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddElements{Table: id, Set: set, Elements: e})
			waitGone(t, ns, keys[0])

			remove := []Op{AddChain{Table: id, Chain: chain("next")}, DeleteElements{Table: id, Set: set, Elements: e[:2]}}
			if !c.destroy {
				t.Fatal("Open did not find NFT_MSG_DESTROYSETELEM")
			}
			c.destroy = false // as on a kernel before 6.3
			var be *BatchError
			if _, err := c.Commit(remove); !errors.As(err, &be) || be.Errno != unix.ENOENT || be.Index != 1 {
				t.Errorf("delete without NFT_MSG_DESTROYSETELEM = %v, want ENOENT of op 1", err)
			}
			c.destroy = true
			commit(t, c, remove...)
			list := ns.ListRuleset(t)
			if strings.Contains(list, "10.0.0.2") {
				t.Errorf("the element beside it stayed:\n%s", list)
			}
			contains(t, list, "chain next", keys[2])
		})
	}
}

// Elements of other sets are deleted with the strict message: if one of them is missing,
// the caller must learn of it.
func TestOnlySetsWithTimeoutsAreDestroyedFrom(t *testing.T) {
	for _, tt := range []struct {
		set  set.Set
		want uint16
	}{
		{set.Set{Name: "s", Key: set.Type{Len: 4}}, unix.NFT_MSG_DELSETELEM},
		{set.Set{Name: "s", Key: set.Type{Len: 4}, Flags: unix.NFT_SET_TIMEOUT}, nftMsgDestroySetElem},
	} {
		e := encoder{features: features{destroy: true}, seq: 1}
		if _, err := e.encode(DeleteElements{Table: testTable(), Set: &tt.set, Elements: []set.Element{{Key: "abcd"}}}); err != nil {
			t.Fatal(err)
		}
		e.closeLast()
		if h, _, _, ok := nextMessage(e.buf); !ok || h.typ != msgType(int(tt.want)) {
			t.Errorf("flags %#x: message type %#x, want %#x", tt.set.Flags, h.typ, msgType(int(tt.want)))
		}
	}
}

// waitGone waits until nft does not list an element.
func waitGone(t *testing.T, ns *nfttest.NS, key string) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; {
		list := ns.ListRuleset(t)
		if !strings.Contains(list, key) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("element %s did not run out:\n%s", key, list)
		}
	}
}
