package nfttest

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestNamespaceIsItsOwn(t *testing.T) {
	a, b := New(t), New(t)
	a.Nft(t, "table ip only-in-a {\n chain c {\n counter\n }\n}\n")
	if got := a.ListRuleset(t); !strings.Contains(got, "table ip only-in-a") {
		t.Errorf("ruleset of a = %q, want table only-in-a", got)
	}
	if got := b.ListRuleset(t); got != "" {
		t.Errorf("ruleset of b = %q, want none", got)
	}
	if _, err := a.Output("", "nft", "delete", "table", "ip", "absent"); err == nil || !strings.Contains(err.Error(), "No such file") {
		t.Errorf("delete missing table = %v, want nft's own words", err)
	}
}

func TestDoKeepsCallersNamespace(t *testing.T) {
	ns := New(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var inside string
	if err := ns.Do(func() (err error) {
		inside, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	after, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if inside == before || after != before {
		t.Errorf("namespaces before %s, inside %s, after %s", before, inside, after)
	}
	sentinel := errors.New("sentinel")
	if err := ns.Do(func() error { return sentinel }); !errors.Is(err, sentinel) {
		t.Errorf("Do = %v, want the function's error", err)
	}
	if err := ns.Do(func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("Do with Goexit = nil, want an error")
	}
}

func TestVethCarriesTraffic(t *testing.T) {
	a, b := New(t), New(t)
	Veth(t,
		Port{NS: a, Name: "eth0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24"), netip.MustParsePrefix("fd09::1/64")}},
		Port{NS: b, Name: "eth0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24"), netip.MustParsePrefix("fd09::2/64")}},
	)
	b.Route(t, netip.MustParsePrefix("10.10.0.0/16"), netip.MustParseAddr("10.9.0.1"))
	for _, addr := range []string{"10.9.0.2:0", "[fd09::2]:0"} {
		var l net.Listener
		if err := b.Do(func() (err error) { l, err = net.Listen("tcp", addr); return err }); err != nil {
			t.Fatal(err)
		}
		err := a.Do(func() error {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			return c.Close()
		})
		if err != nil {
			t.Errorf("dial %s across the pair: %v", l.Addr(), err)
		}
		_ = l.Close()
	}
}
