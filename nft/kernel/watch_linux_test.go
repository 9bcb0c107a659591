package kernel

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// receive waits for a change.
func receive(t *testing.T, changes <-chan Change) Change {
	t.Helper()
	select {
	case change, ok := <-changes:
		if !ok {
			t.Fatal("the watch ended")
		}
		return change
	case <-time.After(3 * time.Minute):
		t.Fatal("no change was reported")
		return Change{}
	}
}

func TestWatchReportsForeignChangesOfOwnTables(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{NoOwner: true})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changes, err := c.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// A commit of the connection is not reported, and does not overflow the socket.
	id := testTable()
	set, elements := loadEndpoints(t, 50_000)
	commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddElements{Table: id, Set: set, Elements: elements})
	// Changes of foreign tables are not reported either.
	ns.Nft(t, "add table ip other\nadd table ip6 weft\nadd chain ip6 weft c")

	ns.Nft(t, "add chain ip weft intruder\nadd chain ip weft intruder2")
	change := receive(t, changes)
	if change.Table != id || change.Reason != Changed || change.Process != "nft" || change.PID == 0 || change.PortID == 0 {
		t.Errorf("change = %+v, want one of ip weft by nft", change)
	}
	if gen, err := c.Generation(); err != nil || gen != change.Generation {
		t.Errorf("generation %d, %v, want that of the change, %d", gen, err, change.Generation)
	}
	ns.Run(t, "nft", "flush", "ruleset")
	if change := receive(t, changes); change.Table != id || change.Reason != Deleted {
		t.Errorf("change = %+v, want deletion of ip weft", change)
	}
	dump, err := c.Dump()
	if err != nil || len(dump) != 0 {
		t.Fatalf("Dump = %+v, %v", dump, err)
	}
	commit(t, c, AddTable{Table: id}, AddSet{Table: id, Set: set})
	cancel()
	if change, ok := <-changes; ok {
		t.Errorf("unexpected change %+v", change)
	}
}

func TestWatchOverrun(t *testing.T) {
	ns := nfttest.New(t)
	c := open(t, ns, Config{NoOwner: true})
	commit(t, c, AddTable{Table: testTable()})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changes, err := c.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Another Conn is the foreign process. The test does not receive changes, so the
	// watcher blocks, and the socket gets more events than it can hold.
	other := open(t, ns, Config{NoOwner: true})
	if _, err := other.Adopt(); err != nil {
		t.Fatal(err)
	}
	const chains = 2 * watchQueue
	for i := range chains {
		commit(t, other, AddChain{Table: testTable(), Chain: chain(fmt.Sprintf("c%d", i))})
	}
	id := nft.TableID{Family: nft.FamilyIP, Name: "other"}
	set, elements := loadEndpoints(t, 110_000)
	commit(t, other, AddTable{Table: id}, AddSet{Table: id, Set: set}, AddElements{Table: id, Set: set, Elements: elements})
	for range chains + 1 {
		change := receive(t, changes)
		if change.Reason == Overrun && change.Table == (nft.TableID{}) {
			return
		}
		if change.Table != testTable() || change.Reason != Changed || change.PortID != other.portID.Load() {
			t.Fatalf("change = %+v, want a change of ip weft by port %d", change, other.portID.Load())
		}
	}
	t.Error("no overrun was reported")
}
