package kernel

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

func TestDeleteOfAnElementThatRanOut(t *testing.T) {
	nfttest.RequireKernel(t, 6, 3) // NFT_MSG_DESTROYSETELEM
	for _, decl := range []nft.Set{
		{Name: "hash", Type: "ipv4_addr", Flags: []string{"timeout"}},
		{Name: "ranges", Type: "ipv4_addr", Flags: []string{"interval", "timeout"}},
		{Name: "concat", Type: "ipv4_addr . inet_service", Flags: []string{"interval", "timeout"}},
	} {
		eachKernel(t, decl.Name, func(t *testing.T, before63 bool) {
			ns, c := connect(t, Config{})
			id, set := testTable(), setOf(decl)
			keys := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
			for i := range keys {
				if decl.Name == "concat" {
					keys[i] += " . 80"
				}
			}
			e := pack(set, keys...)
			e[0].Timeout, e[1].Timeout = 50*time.Millisecond, time.Hour
			commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddElements{Table: id, Set: set, Elements: e})
			waitGone(t, ns, keys[0])

			remove := []Op{AddChain{Table: id, Chain: chain("next")}, DeleteElements{Table: id, Set: set, Elements: e[:2]}}
			if !c.destroy {
				t.Fatal("Open did not find NFT_MSG_DESTROYSETELEM")
			}
			c.destroy = !before63
			commit(t, c, remove...)
			list := ns.ListRuleset(t)
			if strings.Contains(list, "10.0.0.2") {
				t.Errorf("the element beside it stayed:\n%s", list)
			}
			contains(t, list, "chain next", keys[2])
		})
	}
}

// eachKernel runs a test with the kernel's features, and as on a kernel before 6.3.
func eachKernel(t *testing.T, name string, f func(t *testing.T, before63 bool)) {
	t.Run(name, func(t *testing.T) { f(t, false) })
	t.Run(name+" before 6.3", func(t *testing.T) { f(t, true) })
}

// An element that is renewed has all of its time again, or what its State says, whether it is there or not.
func TestRenew(t *testing.T) {
	for _, decl := range []nft.Set{
		{Name: "hash", Type: "ipv4_addr", Flags: []string{"timeout"}},
		{Name: "default", Type: "ipv4_addr", Flags: []string{"timeout"}, Timeout: time.Hour},
		{Name: "dynamic", Type: "ipv4_addr", Flags: []string{"timeout", "dynamic"}},
		{Name: "ranges", Type: "ipv4_addr", Flags: []string{"interval", "timeout"}},
		{Name: "concat", Type: "ipv4_addr . inet_service", Flags: []string{"interval", "timeout"}},
	} {
		eachKernel(t, decl.Name, func(t *testing.T, before63 bool) {
			ns, c := connect(t, Config{})
			if before63 {
				c.destroy, c.renew = false, false
			}
			id, s := testTable(), setOf(decl)
			keys := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
			for i := range keys {
				if decl.Name == "concat" {
					keys[i] += " . 80"
				}
			}
			elements := pack(s, keys...)
			for i := range elements {
				if s.Timeout == 0 {
					elements[i].Timeout = time.Hour
				}
			}
			old := slices.Clone(elements)
			old[0].State, old[1].State = set.NewState(10*time.Minute, nil), set.NewState(50*time.Millisecond, nil)
			commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: s}, AddElements{Table: id, Set: s, Elements: old[:2]})
			waitGone(t, ns, keys[1])
			again := slices.Clone(elements)
			again[2].State = set.NewState(20*time.Minute, nil)
			for range 2 {
				commit(t, c, AddElements{Table: id, Set: s, Elements: again, Renew: true})
				live := nfttest.Must(c.DumpLive(id, LiveQuery{Sets: []*set.Set{s}, Limit: 10}))
				var left []string
				for _, e := range live.Elements[s.Name].Elements {
					left = append(left, e.Expires().Round(10*time.Minute).String())
				}
				if slices.Sort(left); !slices.Equal(left, []string{"1h0m0s", "1h0m0s", "20m0s"}) {
					t.Errorf("renewed elements have %v left", left)
				}
			}
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
		e := encoder{features: features{destroy: true}, buffer: buffer{seq: 1}}
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
