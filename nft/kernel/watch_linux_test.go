package kernel

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// receive waits for an event.
func receive[T any](t *testing.T, events <-chan T) T {
	t.Helper()
	select {
	case event, ok := <-events:
		if !ok {
			t.Fatal("the events ended")
		}
		return event
	case <-time.After(3 * time.Minute):
		t.Fatal("no event was reported")
		panic("not reached")
	}
}

func TestWatchReportsForeignChangesOfOwnTables(t *testing.T) {
	ns, c := connect(t, Config{NoOwner: true})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changes := nfttest.Must(c.Watch(ctx))
	// A commit of the connection is not reported, and does not overflow the socket.
	id := testTable()
	set, elements := loadEndpoints(50_000)
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
	ns, c := connect(t, Config{NoOwner: true})
	commit(t, c, AddTable{Table: testTable()})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changes := nfttest.Must(c.Watch(ctx))
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
	set, elements := loadEndpoints(110_000)
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

// TestTrace sends a packet through a rule that jumps, a chain that returns, and a policy.
func TestTrace(t *testing.T) {
	ns, c := connect(t, Config{})
	id := testTable()
	var handles [2]Handle
	out := &object.Chain{Name: "out", Base: &object.Base{Type: "filter", Hook: unix.NF_INET_LOCAL_OUT, Drop: true}}
	commit(t, c, AddTable{Table: id}, AddChain{Table: id, Chain: chain("sub")}, AddChain{Table: id, Chain: out},
		AddRule{Table: id, Chain: "out", Rule: ruleOf("udp dport 7 meta nftrace set 1 meta mark set 9 jump sub", ""), Handle: &handles[0]},
		AddRule{Table: id, Chain: "sub", Rule: ruleOf("udp dport 7 counter", ""), Handle: &handles[1]})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := nfttest.Must(c.Trace(ctx))
	nfttest.NoError(t, ns.Do(func() error {
		conn, err := net.Dial("udp4", "127.0.0.1:7")
		if err != nil {
			return err
		}
		_, _ = conn.Write([]byte("x")) // the policy drops it, which the kernel reports as EPERM
		return conn.Close()
	}))
	jump, counter, end, endOut, policy := receive(t, events), receive(t, events), receive(t, events), receive(t, events), receive(t, events)
	if jump.Type != TraceRule || jump.Table != id || jump.Chain != "out" || jump.Rule != handles[0].N ||
		jump.Verdict.Code != datatype.VerdictJump || jump.Verdict.Chain != "sub" {
		t.Errorf("first event = %+v, want the jump of rule %d", jump, handles[0].N)
	}
	if counter.Type != TraceRule || counter.Chain != "sub" || counter.Rule != handles[1].N || counter.Verdict.Code != datatype.VerdictContinue {
		t.Errorf("second event = %+v, want rule %d to continue", counter, handles[1].N)
	}
	if end.Type != TraceReturn || end.Chain != "sub" {
		t.Errorf("third event = %+v, want the end of sub", end)
	}
	if endOut.Type != TraceReturn || endOut.Chain != "out" {
		t.Errorf("fourth event = %+v, want the end of out", endOut)
	}
	if policy.Type != TracePolicy || policy.Chain != "out" || policy.Policy != datatype.VerdictDrop || policy.Mark != 9 {
		t.Errorf("fifth event = %+v, want the policy of out with mark 9", policy)
	}
	for _, e := range []TraceEvent{counter, end, endOut, policy} {
		if e.ID != jump.ID || e.Table != id {
			t.Errorf("event %+v has another packet or table", e)
		}
	}
	if jump.Protocol != nft.FamilyIP || jump.Out == 0 || jump.In != 0 || len(jump.Network) != 20 || len(jump.Transport) != 9 {
		t.Errorf("first event = %+v, want a packet of IPv4 and UDP, and an interface", jump)
	} else if to, _ := netip.AddrFromSlice(jump.Network[16:20]); to.String() != "127.0.0.1" || jump.Transport[3] != 7 {
		t.Errorf("the packet goes to %v port %d", to, jump.Transport[3])
	}
	cancel()
	if e, ok := <-events; ok {
		t.Errorf("unexpected event %+v", e)
	}
}

func TestDecodeTracesOfMalformedMessages(t *testing.T) {
	valid := appendHeader(nil, msgType(unix.NFT_MSG_TRACE), 0, 0, uint8(nft.FamilyIP), 0)
	valid = append(valid, 8, 0, unix.NFTA_TRACE_TYPE, 0, 0, 0, 0, unix.NFT_TRACETYPE_POLICY)
	closeMessage(valid, 0)
	if got := decodeTraces(valid); len(got) != 1 || got[0].Type != TracePolicy {
		t.Fatalf("events = %+v, want a policy", got)
	}
	for n := 1; n < len(valid); n++ {
		if got := decodeTraces(valid[:n]); len(got) != 1 || got[0].Type != TraceOverrun {
			t.Errorf("events of the first %d bytes = %+v, want an overrun", n, got)
		}
	}
}

func TestTraceTypeString(t *testing.T) {
	for typ, want := range map[TraceType]string{TracePolicy: "policy", TraceReturn: "return", TraceRule: "rule", TraceOverrun: "overrun", TraceFailed: "failed", 9: "type(9)"} {
		if got := typ.String(); got != want {
			t.Errorf("TraceType(%d) = %q, want %q", uint32(typ), got, want)
		}
	}
}
