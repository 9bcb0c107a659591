package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// ownership opens a Conn that owns its tables. It skips the test on kernels before 6.9,
// which do not have NFT_TABLE_F_PERSIST.
func ownership(t *testing.T, ns *nfttest.NS) *Conn {
	t.Helper()
	nfttest.RequireKernel(t, 6, 9)
	c := open(t, ns, Config{})
	if !c.Owner() {
		t.Fatal("the connection does not own its tables")
	}
	return c
}

// populate creates a table with a chain, a rule and a map with elements.
func populate(t *testing.T, c *Conn) {
	t.Helper()
	id := testTable()
	set, elements := loadEndpoints(t, 20)
	commit(t, c, AddTable{Table: id, Comment: "c"}, AddSet{Table: id, Set: set},
		AddElements{Table: id, Set: set, Elements: elements}, AddChain{Table: id, Chain: chain("pick")},
		AddRule{Table: id, Chain: "pick", Rule: ruleOf(t, "counter", "r"), Owner: "o", Handle: &Handle{}})
}

func TestOwnedTableKeepsOthersAway(t *testing.T) {
	ns := nfttest.New(t)
	c := ownership(t, ns)
	populate(t, c)
	ns.Nft(t, "table ip foreign {\n chain c {\n counter\n }\n}\n")
	before := ns.Run(t, "nft", "list", "table", "ip", "weft")
	for _, args := range []string{
		"add chain ip weft intruder",
		"add element ip weft endpoints { 10.0.0.1 . tcp . 80 . 0 : 10.0.0.2 . 80 }",
		"add rule ip weft pick drop",
		"flush chain ip weft pick",
		"flush map ip weft endpoints",
		"flush table ip weft",
		"delete map ip weft endpoints",
		"delete table ip weft",
	} {
		_, err := ns.Output("", "nft", strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), "Operation not permitted") {
			t.Errorf("nft %s = %v, want EPERM", args, err)
		}
	}
	ns.Run(t, "nft", "flush", "ruleset")
	list := ns.ListRuleset(t)
	if strings.Contains(list, "foreign") {
		t.Errorf("flush ruleset left the foreign table:\n%s", list)
	}
	if after := ns.Run(t, "nft", "list", "table", "ip", "weft"); after != before {
		t.Errorf("table after attacks:\n%s\nbefore:\n%s", after, before)
	}
}

func TestTakeover(t *testing.T) {
	ns := nfttest.New(t)
	first := ownership(t, ns)
	populate(t, first)
	second := open(t, ns, Config{})
	dump, err := second.Dump()
	if err != nil {
		t.Fatal(err)
	}
	if len(dump) != 1 || dump[0].Owned {
		t.Fatalf("dump = %+v, want one table that is not owned", dump)
	}
	_, err = second.Adopt()
	var owned *OwnedError
	if !errors.As(err, &owned) || owned.Table != testTable() || owned.PortID != first.portID.Load() || owned.PID != os.Getpid() {
		t.Fatalf("Adopt of an owned table = %v (%+v), want an OwnedError that names process %d", err, owned, os.Getpid())
	}
	contains(t, err.Error(), "table ip weft is owned by process", "kernel.test")
	if _, err := second.Commit([]Op{AddTable{Table: testTable()}}); !errors.As(err, &owned) {
		t.Errorf("AddTable of an owned table = %v, want an OwnedError", err)
	}

	before := ns.ListRuleset(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Commit([]Op{AddTable{Table: testTable()}}); !errors.Is(err, ErrNotAdopted) {
		t.Errorf("AddTable of a table that was not adopted = %v, want ErrNotAdopted", err)
	}
	if _, err := second.Commit([]Op{DeleteTable{Table: testTable()}}); !errors.Is(err, ErrNotAdopted) {
		t.Errorf("DeleteTable of a table that was not adopted = %v, want ErrNotAdopted", err)
	}
	if dump, err = second.Adopt(); err != nil {
		t.Fatal(err)
	}
	if len(dump) != 1 || !dump[0].Owned || len(dump[0].Sets[0].Elements) != 20 {
		t.Fatalf("adopted %+v", dump)
	}
	if after := ns.ListRuleset(t); after != before {
		t.Errorf("takeover changed the ruleset:\n%s\nbefore:\n%s", after, before)
	}
	if _, err := ns.Output("", "nft", "delete", "table", "ip", "weft"); err == nil {
		t.Error("another process deleted the table after the takeover")
	}
	rule := dump[0].Chains[0].Rules[0]
	if !rule.Info.Ours || rule.Info.Owner != "o" || rule.Info.Comment != "r" {
		t.Errorf("adopted rule %+v", rule.Info)
	}
	commit(t, second, AddTable{Table: testTable()}, // changes nothing
		DeleteRule{Table: testTable(), Chain: "pick", Handle: rule.Handle},
		AddChain{Table: testTable(), Chain: chain("more")})
	if _, err := second.Adopt(); err != nil {
		t.Errorf("second Adopt of an own table = %v", err)
	}
}

func TestForeignTableIsRefused(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		ns.Nft(t, "table ip weft {\n comment \"not ours\"\n chain c {\n counter\n }\n set s {\n type ipv4_addr\n }\n}\n")
		before := ns.ListRuleset(t)
		c := open(t, ns, cfg)
		_, err := c.Commit([]Op{AddTable{Table: testTable()}, AddChain{Table: testTable(), Chain: chain("x")}})
		var be *BatchError
		if !errors.Is(err, ErrForeignTable) || !errors.As(err, &be) || be.Index != 0 {
			t.Errorf("AddTable of a foreign table = %v, want ErrForeignTable at op 0", err)
		}
		contains(t, err.Error(), "table ip weft")
		if dump, err := c.Adopt(); err != nil || len(dump) != 0 {
			t.Errorf("Adopt = %+v, %v, want no tables", dump, err)
		}
		if _, err := c.Commit([]Op{DeleteTable{Table: testTable()}}); !errors.Is(err, ErrNotAdopted) {
			t.Errorf("DeleteTable of a foreign table = %v, want ErrNotAdopted", err)
		}
		if dump, err := c.Dump(); err != nil || len(dump) != 0 {
			t.Errorf("Dump = %+v, %v, want no tables", dump, err)
		}
		if after := ns.ListRuleset(t); after != before {
			t.Errorf("the foreign table changed:\n%s", after)
		}
	})
}

func TestAdoptTableCreatedWithoutOwnership(t *testing.T) {
	ns := nfttest.New(t)
	old := open(t, ns, Config{NoOwner: true})
	if old.Owner() {
		t.Fatal("NoOwner has no effect")
	}
	populate(t, old)
	c := ownership(t, ns)
	dump, err := c.Adopt()
	if err != nil {
		t.Fatal(err)
	}
	if len(dump) != 1 || !dump[0].Owned {
		t.Fatalf("adopted %+v", dump)
	}
	if !c.Unprotected() {
		t.Error("batches on a table without ownership do not carry the generation")
	}
	ns.Nft(t, "add table ip other")
	commit(t, c, AddTable{Table: testTable()}, AddChain{Table: testTable(), Chain: chain("more")})
}

func TestOpenWithoutPrivilege(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	// Netlink checks the capabilities of the opener's user namespace against
	// the one of the network namespace. The process in a new user namespace has none.
	cmd := exec.Command("unshare", "--user", os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, string(out), "CAP_NET_ADMIN")
}

// childEnv makes the test binary open a Conn and print the error.
const childEnv = "WEFT_KERNEL_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	_, err := Open(Config{})
	fmt.Println(err)
	if !errors.Is(err, ErrPermission) {
		os.Exit(1)
	}
}
