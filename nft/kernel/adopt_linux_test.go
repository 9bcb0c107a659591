package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
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
	set, elements := loadEndpoints(20)
	commit(t, c, AddTable{Table: id, Comment: "c"}, AddSet{Table: id, Set: set},
		AddElements{Table: id, Set: set, Elements: elements}, AddChain{Table: id, Chain: chain("pick")},
		AddRule{Table: id, Chain: "pick", Rule: ruleOf("counter", "r"), Owner: "o", Handle: &Handle{}})
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
	dump := nfttest.Must(second.Dump())
	if len(dump) != 1 || dump[0].Owned {
		t.Fatalf("dump = %+v, want one table that is not owned", dump)
	}
	_, err := second.Adopt()
	var owned *OwnedError
	if !errors.As(err, &owned) || owned.Table != testTable() || owned.PortID != first.portID.Load() || owned.PID != os.Getpid() {
		t.Fatalf("Adopt of an owned table = %v (%+v), want an OwnedError that names process %d", err, owned, os.Getpid())
	}
	contains(t, err.Error(), "table ip weft is owned by process", "kernel.test")
	if _, err := second.Commit([]Op{AddTable{Table: testTable()}}); !errors.As(err, &owned) {
		t.Errorf("AddTable of an owned table = %v, want an OwnedError", err)
	}

	before := ns.ListRuleset(t)
	nfttest.NoError(t, first.Close())
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
	dump := nfttest.Must(c.Adopt())
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

// TestInherit: a connection that takes the socket of an earlier one over owns its tables, which never
// are without an owner. One in another network namespace refuses it.
func TestInherit(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	first := open(t, ns, Config{})
	if !first.Owner() {
		t.Skip("this kernel has no owners of tables")
	}
	if _, err := first.Commit([]Op{AddTable{Table: testTable()}}); err != nil {
		t.Fatal(err)
	}
	kept := nfttest.Must(first.File())
	defer kept.Close()
	nfttest.NoError(t, first.Close())
	flush := func() {
		t.Helper()
		if _, err := ns.Output("", "nft", "flush", "ruleset"); err != nil {
			t.Fatal(err)
		}
		if out, err := ns.Output("", "nft", "list", "ruleset"); err != nil || !strings.Contains(out, "table ip weft") {
			t.Fatalf("after a flush: %v\n%s", err, out)
		}
	}
	flush()
	give := func() (*os.File, error) {
		fd, err := unix.FcntlInt(kept.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		return os.NewFile(uintptr(fd), "kept"), err
	}
	if _, err := open(t, nfttest.New(t), Config{Inherit: give}).Adopt(); !errors.Is(err, errOtherNetwork) {
		t.Errorf("in another network namespace: %v", err)
	}
	if _, err := open(t, ns, Config{}).Adopt(); !errors.As(err, new(*OwnedError)) {
		t.Errorf("without the socket: %v, want an *OwnedError", err)
	}
	if _, err := open(t, ns, Config{Inherit: func() (*os.File, error) { return nil, ErrHeld }}).Adopt(); !errors.Is(err, ErrHeld) {
		t.Errorf("while another process uses the socket: %v", err)
	}
	next := open(t, ns, Config{Inherit: give})
	if tables, err := next.Adopt(); err != nil || len(tables) != 1 {
		t.Fatalf("adopt: %v, %v", tables, err)
	}
	nfttest.NoError(t, kept.Close())
	flush()
	if _, err := next.Commit([]Op{DeleteTable{Table: testTable()}}); err != nil {
		t.Errorf("the next connection cannot change the table: %v", err)
	}
}

// foreignRules is a table that weft did not create. It has one jump of each kind, and data
// that looks like one.
const foreignRules = `table ip nat {
	map m { type ipv4_addr : verdict; }
	chain a { counter; }
	chain b { ip daddr 10.0.0.1 tcp dport 80 counter goto a; }
	chain pre {
		type nat hook prerouting priority dstnat; policy accept;
		ip saddr 10.0.0.0/8 meta mark set 0x4000 jump b
		ip saddr vmap @m
		accept
		dnat to 10.0.0.2
	}
}
table ip6 nat { chain a { counter; }; }`

// TestSurvey reads the chains of a foreign table and the targets of its rules.
func TestSurvey(t *testing.T) {
	ns := nfttest.New(t)
	ns.Nft(t, foreignRules)
	c := open(t, ns, Config{})
	s := nfttest.Must(c.Survey(nft.TableID{Family: nft.FamilyIP, Name: "nat"}))
	var got []string
	for _, chain := range s.Chains {
		line := chain.Name
		if chain.Base != nil {
			line += " " + chain.Base.Type
		}
		for _, r := range chain.Rules {
			if r.Handle == 0 {
				t.Errorf("chain %s: a rule without a handle", chain.Name)
			}
			line += " ->" + r.Target
		}
		got = append(got, line)
	}
	if want := "a ->|b ->a|pre nat ->b -> -> ->"; strings.Join(got, "|") != want || s.Ours {
		t.Errorf("survey: %s, ours %t; want %s, false", strings.Join(got, "|"), s.Ours, want)
	}
	if s, err := c.Survey(nft.TableID{Family: nft.FamilyIP, Name: "none"}); s != nil || err != nil {
		t.Errorf("table that is not there: %v, %v", s, err)
	}
	commit(t, c, AddTable{Table: testTable()})
	if s, err := c.Survey(testTable()); err != nil || !s.Ours {
		t.Errorf("weft's own table: %+v, %v", s, err)
	}
}

// TestRemoveForeign removes the named objects and no others, or nothing.
func TestRemoveForeign(t *testing.T) {
	ns := nfttest.New(t)
	ns.Nft(t, foreignRules)
	c := open(t, ns, Config{})
	id := nft.TableID{Family: nft.FamilyIP, Name: "nat"}
	before := ns.ListRuleset(t)
	err := c.RemoveForeign(Removal{Table: id, Flush: []string{"b"}, Chains: []string{"b"}})
	if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "delete chain ip nat b") {
		t.Errorf("chain in use: %v, want EBUSY that names it", err)
	}
	if after := ns.ListRuleset(t); after != before {
		t.Errorf("a refused removal changed something:\n%s", after)
	}
	commit(t, c, AddTable{Table: testTable()})
	if err := c.RemoveForeign(Removal{Table: testTable(), Whole: true}); !errors.Is(err, ErrOurs) {
		t.Errorf("weft's own table: %v, want ErrOurs", err)
	}
	s := nfttest.Must(c.Survey(id))
	var jump RemovalRule
	for _, chain := range s.Chains {
		for _, r := range chain.Rules {
			if r.Target == "b" {
				jump = RemovalRule{Chain: chain.Name, Handle: r.Handle}
			}
		}
	}
	err = c.RemoveForeign(
		Removal{Table: id, Rules: []RemovalRule{jump}, Flush: []string{"a", "b"}, Chains: []string{"b"}},
		Removal{Table: nft.TableID{Family: nft.FamilyIP6, Name: "nat"}, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	after := ns.ListRuleset(t)
	contains(t, after, "chain a", "ip saddr vmap @m", "dnat to 10.0.0.2", "table ip weft")
	for _, gone := range []string{"chain b", "jump b", "counter", "table ip6"} {
		if strings.Contains(after, gone) {
			t.Errorf("%q is still there:\n%s", gone, after)
		}
	}
}
