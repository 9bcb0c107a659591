package desired_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

var (
	listSeed  = flag.Uint64("lists.seed", 1, "decides what the lists hold")
	listCount = flag.Int("lists", 8, "how many lists of addresses are loaded by nft and by weft")
	listSize  = flag.Int("lists.size", 400, "how many elements the largest list has")
)

// publicList makes a list like those that are published: prefixes, ranges and addresses near each other,
// some twice, some inside of others.
func publicList(r *rand.Rand, six bool, n int) []string {
	nets := make([]netip.Addr, 1+n/50)
	random := func() netip.Addr {
		var b [16]byte
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if six {
			b[0], b[1] = 0x20, 0x01
			return netip.AddrFrom16(b)
		}
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	for i := range nets {
		nets[i] = random()
	}
	near := func() netip.Addr {
		b, at := nets[r.IntN(len(nets))].AsSlice(), 1+r.IntN(2)
		b[len(b)-1] = byte(r.Uint32())
		if at == 2 {
			b[len(b)-2] = byte(r.Uint32())
		}
		a, _ := netip.AddrFromSlice(b)
		return a
	}
	list := make([]string, 0, n)
	for len(list) < n {
		a := near()
		switch kind := r.IntN(10); {
		case kind < 3:
			list = append(list, a.String())
		case kind < 5:
			list = append(list, a.String(), a.Next().String())
		case kind < 8:
			list = append(list, netip.PrefixFrom(a, a.BitLen()-r.IntN(14)).Masked().String())
		case kind < 9 && len(list) > 0:
			list = append(list, list[r.IntN(len(list))])
		default:
			b := near()
			if b.Less(a) {
				a, b = b, a
			}
			if r.IntN(8) > 0 {
				b = a.Next().Next()
			}
			list = append(list, a.String()+"-"+b.String())
		}
	}
	return list
}

func listText(six bool, list []string) string {
	family, key := "ip", "ipv4_addr"
	if six {
		family, key = "ip6", "ipv6_addr"
	}
	return fmt.Sprintf("table %s t {\n set s {\n type %s\n flags interval\n auto-merge\n elements = { %s }\n }\n}\n", family, key, strings.Join(list, ", "))
}

// setOnly is what is listed of sets, without the tables, which have an owner when weft made them.
func setOnly(listing string) string {
	_, rest, _ := strings.Cut(listing, "set s {")
	return rest
}

// TestListsAsNft loads lists with nft and with weft, and compares what nft then lists of both, and what it
// decodes of the kernel's elements.
func TestListsAsNft(t *testing.T) {
	nfttest.Require(t, nfttest.NFT)
	t.Logf("seed %d", *listSeed)
	r := rand.New(rand.NewPCG(*listSeed, 1))
	l, other := newLive(t), nfttest.New(t)
	for i := range *listCount {
		six := i%2 == 1
		list := publicList(r, six, 1+r.IntN(*listSize))
		text := listText(six, list)
		update := l.compile(policy, text)
		start := time.Now()
		l.commit(update)
		took := time.Since(start)
		other.Nft(t, "flush ruleset\n"+text)
		for _, args := range [][]string{{"list", "ruleset"}, {"--debug=netlink", "list", "ruleset"}} {
			got, want := l.ns.Run(t, "nft", args...), other.Run(t, "nft", args...)
			if args[0] == "list" {
				got, want = setOnly(got), setOnly(want)
			} else {
				got, _, _ = strings.Cut(got, "\ntable")
				want, _, _ = strings.Cut(want, "\ntable")
			}
			if got != want || !strings.Contains(want, "element") {
				t.Fatalf("list %d of %d elements: nft %v lists of weft\n%.2000s\nand of nft\n%.2000s", i, len(list), args, got, want)
			}
		}
		if i >= *listCount-20 {
			t.Logf("list %d: %d elements, committed and compared in %s", i, len(list), took)
		}
	}
}

// TestUnionInTheKernel lets two publishers add and remove parts of lists.
func TestUnionInTheKernel(t *testing.T) {
	r := rand.New(rand.NewPCG(*listSeed, 2))
	l := newLive(t)
	list := publicList(r, false, *listSize)
	first := l.compile(policy, listText(false, list[:len(list)/2]))
	decl := first.Tables[0].PutSets[0].Decl
	all := l.compile(extra, listText(false, list)).Tables[0].PutSets[0].Elements
	l.commit(first)
	second := *first
	second.Fragment = extra
	l.commit(&second)
	stated := map[desired.Key]map[nftset.Element]bool{policy: {}, extra: {}}
	for _, e := range first.Tables[0].PutSets[0].Elements {
		stated[policy][e], stated[extra][e] = true, true
	}
	for step := range 30 {
		key := []desired.Key{policy, extra}[r.IntN(2)]
		change := desired.Elements{Set: "s"}
		for _, e := range all {
			switch r.IntN(20) {
			case 0:
				change.Add = append(change.Add, e)
				stated[key][e] = true
			case 1:
				change.Remove = append(change.Remove, e)
			}
		}
		for _, e := range change.Remove {
			if !slices.Contains(change.Add, e) {
				delete(stated[key], e)
			}
		}
		l.commit(patch(key, in(nft.TableID{Family: nft.FamilyIP, Name: "t"}, change)))
		if step == 15 {
			l.restart()
			for _, key := range []desired.Key{extra, policy} {
				u := *first
				u.Fragment = key
				u.Tables = []desired.TableUpdate{{Table: first.Tables[0].Table, PutSets: []desired.Set{{Decl: decl}}}}
				for e := range stated[key] {
					u.Tables[0].PutSets[0].Elements = append(u.Tables[0].PutSets[0].Elements, e)
				}
				l.commit(&u)
			}
		}
		var union []nftset.Element
		for _, elems := range stated {
			for e := range elems {
				union = append(union, e)
			}
		}
		want, err := decl.Normalize(union)
		must(t, err)
		dump, err := l.conn.Dump()
		must(t, err)
		if got := dump[0].Sets[0].Elements; !slices.Equal(got, want) {
			t.Fatalf("step %d: the kernel has %d elements, want %d", step, len(got), len(want))
		}
	}
}

// TestBytesAsNft commits sets and rules, and compares the kernel's elements, with the ends, with those
// after "nft -f".
func TestBytesAsNft(t *testing.T) {
	nfttest.Require(t, nfttest.NFT)
	const set = "table ip t {\n%s s {\n type %s\n flags interval\n elements = { %s }\n}\n"
	for _, text := range []string{
		fmt.Sprintf(set+"}", "set", "ipv4_addr", "10.0.0.5, 10.0.0.4, 10.0.1.0/24"),
		fmt.Sprintf(set+"}", "set", "ipv4_addr", "0.0.0.0/8, 10.0.0.0/24, 10.0.1.0/24, 224.0.0.0/3"),
		fmt.Sprintf(set+"}", "set", "ipv4_addr", "10.0.0.9, *"),
		fmt.Sprintf(set+"}", "map", "ipv4_addr : mark", "10.0.0.0/24 : 1, 10.0.1.0/24 : 1, 10.0.2.0/24 : 2"),
		"table ip t {\nchain c {\nip saddr { 10.0.0.0/24, 10.0.1.5, 10.0.1.0, 255.0.0.0/8 } accept\n}\n}",
		"table ip t {\nchain c {\ntcp dport vmap { 1-5 : accept, 6-10 : drop, 100 : accept }\n}\n}",
		"table ip t {\nchain c {\nmeta mark set tcp dport map { 0-5 : 1, 6-10 : 2 }\n}\n}",
	} {
		l, other := newLive(t), nfttest.New(t)
		l.commit(l.compile(policy, text))
		other.Nft(t, text)
		raw := func(ns *nfttest.NS) string {
			out, _, _ := strings.Cut(ns.Run(t, "nft", "--debug=netlink", "list", "ruleset"), "\ntable")
			elems := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return !strings.Contains(line, "element") })
			return strings.Join(elems, "\n")
		}
		if got, want := raw(l.ns), raw(other); got != want || want == "" {
			t.Errorf("%s\nthe kernel has\n%s\nand after nft\n%s", text, got, want)
		}
	}
}
