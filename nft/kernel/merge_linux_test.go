package kernel

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestStatementBetweenComparisons sends packets through a rule with a statement between
// two comparisons: only those that match the first one may run it. nft 1.0.6 merges the
// comparisons and runs the statement for all.
func TestStatementBetweenComparisons(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	id := testTable()
	banned := setOf(t, nft.Set{Name: "banned", Type: "ipv4_addr", Flags: []string{"dynamic"}, Size: 64})
	rule, err := compile.CompileRule(nft.FamilyIP, nft.Rule{Text: "tcp dport 22 add @banned { ip saddr } tcp sport 5 drop"}, setsScope{"banned": banned})
	if err != nil {
		t.Fatal(err)
	}
	in := &object.Chain{Name: "in", Base: &object.Base{Type: "filter", Hook: unix.NF_INET_LOCAL_IN}}
	commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: banned}, AddChain{Table: id, Chain: in},
		AddRule{Table: id, Chain: "in", Rule: rule, Handle: &Handle{}})
	for _, tt := range []struct {
		address string
		want    int
	}{{"127.0.0.1:80", 0}, {"127.0.0.1:22", 1}} {
		// Nothing listens there, and the rule does not drop the packet.
		if err := ns.Do(func() error {
			_, err := net.DialTimeout("tcp4", tt.address, 5*time.Second)
			return err
		}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
		got, err := c.DumpSet(id, banned)
		if err != nil || len(got) != tt.want {
			t.Errorf("after a packet to %s: %d senders are banned, want %d (error %v)", tt.address, len(got), tt.want, err)
		}
	}
}
