package lint_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/lint"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// conditions are the comparisons of the corpora of package compile, each as it is and denied, so that
// one of the two holds for a packet that has what is compared.
func conditions(t *testing.T) (out []string) {
	for _, c := range nfttest.ReadCorpora(t, "../compile/testdata/corpus") {
		for _, text := range c.Rules {
			rule, err := syntax.ParseRule(nft.FamilyInet, text)
			if err != nil {
				continue
			}
			for _, s := range rule.Stmts {
				if m, ok := s.(*syntax.Match); ok {
					out = append(out, syntax.PrintStmt(m))
					if m.Op == "" || m.Op == "==" {
						denied := *m
						denied.Op = "!="
						out = append(out, syntax.PrintStmt(&denied))
					}
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// changing are statements that change compared fields, with a comparison that holds after them.
var changing = []string{
	"meta mark set 7 meta mark 7", "ct mark set 3 ct mark 3", "ct mark set meta mark", "ip ttl set 9 ip ttl 9", "ip6 hoplimit set 9 ip6 hoplimit 9",
	"meta priority set 1:2 meta priority 1:2", "meta pkttype set host meta pkttype host", "tcp option maxseg size set 9", "counter", "limit rate 1000/second", "log",
}

// packets are one of each kind: options and extensions of headers, protocols. None is secured by IPsec, which not every kernel has.
func packets() (out [][]byte) {
	v4 := func(protocol byte, options, payload []byte) {
		n := 20 + len(options)
		b := []byte{byte(0x40 | n/4), 8 << 2, 0, 0, 0x12, 0x34, 0x40, 0, 63, protocol, 0, 0, 10, 1, 0, 1, 10, 1, 0, 2}
		binary.BigEndian.PutUint16(b[2:], uint16(n+len(payload)))
		out = append(out, append(append(b, options...), payload...))
	}
	v6 := func(next byte, payload []byte) {
		b := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0x11, 0x22}, uint16(len(payload)))
		b = append(b, next, 63)
		b = append(b, netip.MustParseAddr("fd01::1").AsSlice()...)
		out = append(out, append(append(b, netip.MustParseAddr("fd01::2").AsSlice()...), payload...))
	}
	tcp := []byte{0x9c, 0xbb, 0, 22, 0, 0, 0, 9, 0, 0, 0, 0, 11 << 4, 2, 0xff, 0xff, 0, 0, 0, 0, // SYN
		2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 3, 3, 7, 1, 1, 1, 1, 0} // maxseg, sack-perm, timestamp, window
	sack := append(slices.Clone(tcp[:20]), 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2)
	sack[12], sack[13] = 8<<4, 0x10
	udp := []byte{0x9c, 0xbb, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4}
	sctp := append([]byte{0x9c, 0xbb, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 20}, make([]byte, 16)...)
	data := append([]byte{0x9c, 0xbb, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 20}, make([]byte, 16)...)
	dccp := append([]byte{0x9c, 0xbb, 0, 80, 3}, make([]byte, 15)...)
	plain := make([]byte, 24)
	echo := []byte{8, 0, 0, 0, 4, 1, 0, 7}
	for _, p := range []struct {
		protocol byte
		payload  []byte
	}{{unix.IPPROTO_TCP, tcp}, {unix.IPPROTO_TCP, sack}, {unix.IPPROTO_UDP, udp}, {unix.IPPROTO_UDPLITE, udp}, {unix.IPPROTO_SCTP, sctp}, {unix.IPPROTO_SCTP, data}, {unix.IPPROTO_DCCP, dccp}, {unix.IPPROTO_ESP, plain}, {unix.IPPROTO_AH, plain}, {unix.IPPROTO_COMP, plain}} {
		v4(p.protocol, nil, p.payload)
		v6(p.protocol, p.payload)
	}
	v4(unix.IPPROTO_ICMP, nil, echo)
	v4(unix.IPPROTO_ICMP, nil, []byte{5, 1, 0, 0, 10, 1, 0, 9}) // redirect
	v6(unix.IPPROTO_ICMPV6, []byte{128, 0, 0, 0, 4, 1, 0, 7})
	v6(unix.IPPROTO_ICMPV6, []byte{2, 0, 0, 0, 0, 0, 5, 0}) // packet too big
	for _, options := range [][]byte{{131, 7, 4, 10, 1, 0, 9, 0}, {137, 7, 4, 10, 1, 0, 9, 0}, {7, 7, 4, 10, 1, 0, 9, 0}, {148, 4, 0, 0}} {
		v4(unix.IPPROTO_TCP, options, tcp)
	}
	for _, header := range [][]byte{{0, 0, 1, 4, 0, 0, 0, 0}, {60, 0, 1, 4, 0, 0, 0, 0}, {43, 0, 2, 0, 0, 0, 0, 0}, {43, 0, 4, 0, 0, 0, 0, 0}, {44, 0, 0, 0, 0, 0, 0, 9}, {135, 0, 1, 0, 0, 0, 0, 0}} {
		next := header[0]
		header[0] = unix.IPPROTO_TCP
		v6(next, append(header, tcp...))
	}
	return out
}

// all matches every packet.
const all = "meta length > 0"

// station is a pair of namespaces: packets of the first pass the rules of the second.
type station struct {
	from  *nfttest.NS
	conn  *kernel.Conn
	table nft.TableID
	rules map[string]*kernel.Handle
	// raw are raw sockets of IPv4 and IPv6.
	raw [2]int
}

// newStation makes the namespaces.
func newStation(t *testing.T) *station {
	s := &station{from: nfttest.New(t), table: nft.TableID{Family: nft.FamilyInet, Name: "t"}, rules: map[string]*kernel.Handle{}}
	to := nfttest.New(t)
	nfttest.Veth(t, nfttest.Port{NS: s.from, Name: "up", Addrs: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24"), netip.MustParsePrefix("fd01::1/64")}},
		nfttest.Port{NS: to, Name: "eth0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.1.0.2/24"), netip.MustParsePrefix("fd01::2/64")}})
	var server net.Listener
	nfttest.NoError(t, to.Do(func() (err error) {
		// It is the socket of the packets to its port.
		server, err = net.Listen("tcp", ":22")
		return err
	}))
	nfttest.NoError(t, s.from.Do(func() (err error) {
		if s.raw[0], err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW); err == nil {
			s.raw[1], err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		}
		return err
	}))
	s.conn = nfttest.Must(kernel.Open(kernel.Config{NetNS: to.FD(), NoOwner: true}))
	t.Cleanup(func() {
		_, _, _, _ = server.Close(), s.conn.Close(), unix.Close(s.raw[0]), unix.Close(s.raw[1])
	})
	s.commit(t, kernel.AddTable{Table: s.table})
	return s
}

func (s *station) commit(t *testing.T, ops ...kernel.Op) {
	t.Helper()
	if _, err := s.conn.Commit(ops); err != nil {
		t.Fatal(err)
	}
}

// load makes the rules those of a new base chain at prerouting, without those that weft or the kernel refuses.
func (s *station) load(t *testing.T, rules []string) {
	t.Helper()
	chain := nfttest.Must(object.CompileChain(s.table.Family, &nft.Chain{Name: "c", Type: "filter", Hook: "prerouting", Priority: "0"}))
	if len(s.rules) > 0 {
		s.commit(t, kernel.DeleteChain{Table: s.table, Name: "c"})
	}
	s.commit(t, kernel.AddChain{Table: s.table, Chain: chain})
	clear(s.rules)
	var ops []kernel.Op
	for _, text := range rules {
		rule, err := compile.CompileRule(s.table.Family, nft.Rule{Text: text + " counter"}, nil)
		if err == nil {
			s.rules[text] = &kernel.Handle{}
			ops = append(ops, kernel.AddRule{Table: s.table, Chain: "c", Rule: rule, Handle: s.rules[text]})
		}
	}
	s.try(ops)
}

// try commits the rules that the kernel accepts. One that cannot be at the hook makes it refuse all others with it.
func (s *station) try(ops []kernel.Op) {
	if _, err := s.conn.Commit(ops); err != nil && len(ops) > 1 {
		s.try(ops[:len(ops)/2])
		s.try(ops[len(ops)/2:])
	}
}

// counted returns how many packets each rule has matched.
func (s *station) counted() map[string]int {
	live := nfttest.Must(s.conn.DumpLive(s.table, kernel.LiveQuery{Rules: true}))
	out := map[string]int{}
	for text, handle := range s.rules {
		if state := live.Rules[handle.N]; len(state) > 0 {
			var packets int
			_, _ = fmt.Sscanf(state[len(state)-1], "counter packets %d", &packets)
			out[text] = packets
		}
	}
	return out
}

// send sends a packet, and returns the rules that matched it.
func (s *station) send(t *testing.T, data []byte) (matched []string) {
	t.Helper()
	before := s.counted()
	var err error
	if data[0]>>4 == 4 {
		err = unix.Sendto(s.raw[0], data, 0, &unix.SockaddrInet4{Addr: [4]byte(data[16:20])})
	} else {
		err = unix.Sendto(s.raw[1], data, 0, &unix.SockaddrInet6{Addr: [16]byte(data[24:40])})
	}
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); ; <-time.After(5 * time.Millisecond) {
		after := s.counted()
		if after[all] > before[all] {
			for text, n := range after {
				if n > before[text] {
					matched = append(matched, text)
				}
			}
			slices.Sort(matched)
			return matched
		}
		if time.Now().After(deadline) {
			t.Fatalf("packet %x does not arrive", data)
		}
	}
}

// TestMatchedIsNeverReported sends packets of every kind through rules of every kind. A rule that has counted one is
// never said not to match: neither the comparisons of the corpora, nor rules made of several that hold for one packet, with statements
// between them that change it.
func TestMatchedIsNeverReported(t *testing.T) {
	const seed = 29
	s, random := newStation(t), rand.New(rand.NewPCG(seed, seed))
	s.load(t, append(conditions(t), all))
	var combined []string
	words := map[string]bool{}
	for _, data := range packets() {
		holds := s.send(t, data)
		for _, text := range holds {
			words[kindOf(text)] = true
		}
		for range 80 {
			parts := []string{}
			for range 2 + random.IntN(3) {
				parts = append(parts, holds[random.IntN(len(holds))])
			}
			if random.IntN(3) == 0 {
				parts = slices.Insert(parts, random.IntN(len(parts)), changing[random.IntN(len(changing))])
			}
			combined = append(combined, strings.Join(parts, " "))
		}
	}
	single := s.judge(t, s.counted())
	s.load(t, append(combined, all))
	for _, data := range packets() {
		s.send(t, data)
	}
	several := s.judge(t, s.counted())
	kinds := make([]string, 0, len(words))
	for word := range words {
		kinds = append(kinds, word)
	}
	slices.Sort(kinds)
	t.Logf("%d comparisons and %d of %d combined rules matched a packet; they begin with %s", single, several, len(combined), strings.Join(kinds, " "))
	if single < 1000 || several < len(combined)/2 || len(kinds) < 40 {
		t.Error("too few rules matched")
	}
}

// kindOf returns the first words of a comparison: "tcp option", "ip", "@nh".
func kindOf(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" (,", r) })
	if len(words) > 1 && (words[1] == "option" || words[1] == "chunk") {
		return words[0] + " " + words[1]
	}
	return words[0]
}

// judge reports the rules that matched and that lint says never match. It returns how many matched.
func (s *station) judge(t *testing.T, counted map[string]int) (matched int) {
	t.Helper()
	var b strings.Builder
	for text, n := range counted {
		if n > 0 {
			matched++
			fmt.Fprintf(&b, "%s counter\n", text)
		}
	}
	found := lint.Run(parse("matched", "table inet t {\nchain c {\ntype filter hook prerouting priority 0;\n"+b.String()+"}\n}\n"), lint.Options{})
	for i := range found {
		t.Errorf("a packet matched, and yet: %s", found[i].String())
	}
	return matched
}

// TestStockIPTables tests that iptables rulesets of other programs, read from the kernel, have no findings.
func TestStockIPTables(t *testing.T) {
	const restore = "iptables-nft-restore"
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	files, err := filepath.Glob("../eval/testdata/stock/*.iptables")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v: want at least 3", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".iptables"), func(t *testing.T) {
			ns := nfttest.New(t)
			ns.Run(t, restore, file)
			r := nfttest.Must(kernel.OpenReader(kernel.Config{NetNS: ns.FD()}))
			defer func() { _ = r.Close() }()
			rules := nfttest.Must(load.Kernel(r))
			if len(rules.Tables) == 0 {
				t.Fatal("no tables")
			}
			found := lint.Run(rules, lint.Options{})
			for i := range found {
				t.Errorf("%s", found[i].String())
			}
		})
	}
}
