package desired_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Objects for tests, packed by hand.

var (
	ipWeft = nft.TableID{Family: nft.FamilyIP, Name: "weft"}
	ipDeny = nft.TableID{Family: nft.FamilyIP, Name: "deny"}

	services = desired.Key{"services", "all"}
	policy   = desired.Key{"policy", "web"}
	extra    = desired.Key{"zeta", "extra"}
)

// Rule makes a rule whose fingerprint is that of its text; refs are the sets
// ("@name"), objects and flowtables ("#kind name") and chains that it refers to.
func rule(text string, refs ...string) *compile.Rule {
	r := &compile.Rule{Family: nft.FamilyIP, Text: text}
	for _, ref := range refs {
		switch ref[0] {
		case '@':
			r.Sets = append(r.Sets, ref[1:])
		case '#':
			if id := named(ref[1:]); id.Kind == merge.KindFlowtable {
				r.Flowtables = append(r.Flowtables, id.Name)
			} else {
				r.Objects = append(r.Objects, id)
			}
		default:
			r.Chains = append(r.Chains, ref)
		}
	}
	sum := sha256.Sum256([]byte(text))
	copy(r.Fingerprint[:], sum[:])
	return r
}

// named is the ID of "kind name".
func named(ref string) merge.ObjectID {
	i := strings.LastIndexByte(ref, ' ')
	return merge.ObjectID{Kind: nft.ObjectKind(ref[:i]), Name: ref[i+1:]}
}

// declared makes an object of "kind name" and the text of its declaration.
func declared(ref, text string) *nftobject.Object {
	id := named(ref)
	return &nftobject.Object{Kind: id.Kind, Name: id.Name, Text: text}
}

func flowtable(name string, devices ...string) *nftobject.Flowtable {
	return &nftobject.Flowtable{Name: name, Devices: devices}
}

// objectMap is a map that leads to counters.
func objectMap(name string, elems ...nftset.Element) desired.Set {
	s := addrMap(name, elems...)
	s.Decl.Data, s.Decl.Object = nftset.Type{}, nft.ObjectCounter
	return s
}

// remember makes a rule that has packets write entries into a map: of a value,
// or of any where that is empty.
func remember(name, data string) *compile.Rule {
	r := rule("update @"+name+" : "+data, "@"+name)
	w := compile.Write{Map: name, Any: data == ""}
	if !w.Any {
		w.Data = addr(data)
	}
	r.Writes = []compile.Write{w}
	return r
}

func regular(name string, rules ...*compile.Rule) desired.Chain {
	return desired.Chain{Decl: &nftobject.Chain{Name: name}, Rules: rules}
}

func base(name string, priority int32, rules ...*compile.Rule) desired.Chain {
	b := &nftobject.Base{Type: "filter", Hook: unix.NF_INET_LOCAL_IN, Priority: priority}
	return desired.Chain{Decl: &nftobject.Chain{Name: name, Base: b}, Rules: rules}
}

func withPolicy(c desired.Chain, drop bool) desired.Chain {
	decl, b := *c.Decl, *c.Decl.Base
	b.Drop, decl.Base = drop, &b
	c.Decl = &decl
	return c
}

var (
	typeAddr    = nftset.Type{ID: 7, Len: 4, Names: []string{"ipv4_addr"}}
	typeAddr6   = nftset.Type{ID: 8, Len: 16, Names: []string{"ipv6_addr"}}
	typeDest    = nftset.Type{ID: 7<<12 | 12<<6 | 13, Len: 12, Fields: []uint32{4, 1, 2}, Names: []string{"ipv4_addr", "inet_proto", "inet_service"}}
	typeSlot    = nftset.Type{ID: 7<<18 | 12<<12 | 13<<6 | 4, Len: 16, Fields: []uint32{4, 1, 2, 4}, Names: []string{"ipv4_addr", "inet_proto", "inet_service", "integer"}}
	typePort    = nftset.Type{ID: 12<<12 | 13<<6 | 4, Len: 12, Fields: []uint32{1, 2, 4}, Names: []string{"inet_proto", "inet_service", "integer"}}
	typeBackend = nftset.Type{ID: 7<<6 | 13, Len: 8, Fields: []uint32{4, 2}, Names: []string{"ipv4_addr", "inet_service"}}
)

func addrSet(name string, elems ...nftset.Element) desired.Set {
	return desired.Set{Decl: &nftset.Set{Name: name, Key: typeAddr}, Elements: elems}
}

func intervalSet(name string, elems ...nftset.Element) desired.Set {
	return desired.Set{Decl: &nftset.Set{Name: name, Key: typeAddr, Flags: nftset.FlagInterval}, Elements: elems}
}

func addrMap(name string, elems ...nftset.Element) desired.Set {
	return desired.Set{Decl: &nftset.Set{Name: name, Key: typeAddr, Data: typeAddr, Map: true, Flags: nftset.FlagMap}, Elements: elems}
}

func verdictMap(name string, elems ...nftset.Element) desired.Set {
	data := nftset.Type{ID: 0xffffff00, Len: 16}
	return desired.Set{Decl: &nftset.Set{Name: name, Key: typeDest, Data: data, Map: true, Verdict: true, Flags: nftset.FlagMap}, Elements: elems}
}

func endpointMap(name string, elems ...nftset.Element) desired.Set {
	d := &nftset.Set{Name: name, Key: typeSlot, Data: typeBackend, Map: true, Flags: nftset.FlagMap}
	return desired.Set{Decl: d, Elements: elems, Conntrack: true}
}

func affinityMap(name string, elems ...nftset.Element) desired.Set {
	s := withFlags(addrMap(name, elems...), nftset.FlagEval|nftset.FlagTimeout)
	s.Affinity = true
	return s
}

func withFlags(s desired.Set, flags uint32) desired.Set {
	d := *s.Decl
	d.Flags |= flags
	s.Decl = &d
	return s
}

func addr(text string) string {
	return string(netip.MustParseAddr(text).AsSlice())
}

func member(text string) nftset.Element { return nftset.Element{Key: addr(text)} }

func mapped(key, value string) nftset.Element {
	return nftset.Element{Key: addr(key), Data: addr(value)}
}

func port(n uint16) string { return string(binary.BigEndian.AppendUint16(nil, n)) + "\x00\x00" }

func dest(vip string, proto byte, p uint16) string {
	return addr(vip) + string([]byte{proto, 0, 0, 0}) + port(p)
}

func leads(key, chain string) nftset.Element {
	const gotoCode = 0xfffffffc // NFT_GOTO
	return nftset.Element{Key: key, Data: string(binary.BigEndian.AppendUint32(nil, gotoCode)) + chain}
}

func endpoint(vip string, proto byte, p uint16, slot uint32, backend string) nftset.Element {
	b := netip.MustParseAddrPort(backend)
	return nftset.Element{
		Key:  dest(vip, proto, p) + string(binary.NativeEndian.AppendUint32(nil, slot)),
		Data: string(b.Addr().AsSlice()) + port(b.Port()),
	}
}

func snapshot(key desired.Key, priority int32, tables ...desired.TableUpdate) *desired.Update {
	return &desired.Update{Fragment: key, Snapshot: true, Priority: priority, Tables: tables}
}

func patch(key desired.Key, tables ...desired.TableUpdate) *desired.Update {
	return &desired.Update{Fragment: key, Tables: tables}
}

// in makes a TableUpdate of chains, sets, objects, flowtables and changes of elements.
func in(id nft.TableID, parts ...any) desired.TableUpdate {
	tu := desired.TableUpdate{Table: id}
	for _, p := range parts {
		switch p := p.(type) {
		case desired.Chain:
			tu.PutChains = append(tu.PutChains, p)
		case desired.Set:
			tu.PutSets = append(tu.PutSets, p)
		case desired.Elements:
			tu.Elements = append(tu.Elements, p)
		case *nftobject.Object:
			tu.PutObjects = append(tu.PutObjects, p)
		case *nftobject.Flowtable:
			tu.PutFlowtables = append(tu.PutFlowtables, p)
		case merge.ObjectID:
			tu.DeleteObjects = append(tu.DeleteObjects, p)
		}
	}
	return tu
}

// harness is a State with a model of the kernel.
type harness struct {
	t testing.TB
	*merge.State
	k *fakeKernel
}

func newHarness(t testing.TB) *harness {
	h := &harness{t: t, State: merge.New(), k: newFakeKernel()}
	if t, ok := t.(*testing.T); ok {
		t.Cleanup(func() { checkInvariants(t, h.State) })
	}
	return h
}

// apply applies updates that must be accepted.
func (h *harness) apply(updates ...*desired.Update) {
	h.t.Helper()
	for _, u := range updates {
		must(h.t, h.Apply(u))
	}
}

// commit plans, executes and accepts, and returns the plan.
func (h *harness) commit(updates ...*desired.Update) *desired.Plan {
	h.t.Helper()
	h.apply(updates...)
	p := planner.Make(h.State)
	checkPlan(h.t, p, h.State.Origin)
	for _, ops := range [][]kernel.Op{p.Ops[:p.Ahead], p.Ops[p.Ahead:]} {
		must(h.t, h.k.commit(ops))
	}
	planner.Accept(h.State)
	return p
}

// ops returns a plan's ops as their types' names.
func planText(p *desired.Plan) string {
	var b []byte
	for i, op := range p.Ops {
		b = append(b, opText(op)...)
		if p.Origin[i] != 0 {
			b = append(b, " <- "...)
			b = append(b, '0'+byte(p.Origin[i]))
		}
		b = append(b, '\n')
	}
	return string(b)
}

// wantPlan compares a plan with its ops as planText has them.
func wantPlan(t testing.TB, what string, p *desired.Plan, want string) {
	t.Helper()
	if got := planText(p); got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// execute commits a plan.
func (k *fakeKernel) execute(t tester, p *desired.Plan) {
	t.Helper()
	if err := k.commit(p.Ops); err != nil {
		t.Fatal(err, "\n", planText(p))
	}
}

func checkPlan(t testing.TB, p *desired.Plan, pending int) {
	t.Helper()
	if len(p.Ops) != len(p.Origin) {
		t.Fatalf("plan has %d ops and %d origins", len(p.Ops), len(p.Origin))
	}
	for i, o := range p.Origin {
		if o < 0 || o >= pending {
			t.Fatalf("op %d %s has origin %d of %d", i, opText(p.Ops[i]), o, pending)
		}
	}
}

// opText puts an op into words; elements are only counted.
func opText(op kernel.Op) string {
	switch op := op.(type) {
	case kernel.AddTable:
		if op.Dormant {
			return "add table " + op.Table.Name + " dormant"
		}
		return "add table " + op.Table.Name
	case kernel.AddObject:
		return "add " + describeObject(merge.ObjectDecl{Object: op.Object}.ID())
	case kernel.DeleteObject:
		return "delete " + describeObject(op.Ref)
	case kernel.AddFlowtable:
		return "add flowtable " + op.Flowtable.Name
	case kernel.DeleteFlowtable:
		return "delete flowtable " + op.Name
	case kernel.DeleteTable:
		return "delete table " + op.Table.Name
	case kernel.AddChain:
		return "add chain " + op.Chain.Name
	case kernel.DeleteChain:
		return "delete chain " + op.Name
	case kernel.AddRule:
		return "add rule " + op.Chain + " " + op.Rule.Text
	case kernel.DeleteRule:
		return "delete rule " + op.Chain
	case kernel.AddSet:
		return "add set " + op.Set.Name
	case kernel.DeleteSet:
		return "delete set " + op.Name
	case kernel.FlushSet:
		return "flush set " + op.Name
	case kernel.AddElements:
		if op.Renew {
			return "renew elements " + op.Set.Name + " " + string('0'+rune(len(op.Elements)))
		}
		return "add elements " + op.Set.Name + " " + string('0'+rune(len(op.Elements)))
	case kernel.DeleteElements:
		return "delete elements " + op.Set.Name + " " + string('0'+rune(len(op.Elements)))
	default:
		return "unknown op"
	}
}

// allTables selects every table.
func allTables(nft.TableID) bool { return true }

// dropAdopted withdraws an adopted fragment, and reports whether it was one and is gone.
func dropAdopted(s *merge.State, key desired.Key) bool {
	f, ok := s.Fragments[key]
	return ok && f.Adopted && s.Change(key, func(a *merge.Apply) {
		a.F = f
		a.Withdraw(f)
	}, nil) == nil
}

// noOps reports whether there is nothing to commit but new deadlines.
func noOps(p *desired.Plan) bool {
	return !slices.ContainsFunc(p.Ops, func(op kernel.Op) bool { add, ok := op.(kernel.AddElements); return !ok || !add.Renew })
}

// Unclaimed is a table or part with content that adopt.Dump found, without a fragment.
type Unclaimed struct {
	Table nft.TableID
	// Object is "chain input", "set blocked" or "counter drops"; "" is the table
	// itself.
	Object string
	// Rules and Elements count content without a fragment.
	Rules, Elements int
}

// unclaimedOf lists the content that DropUnclaimed would remove, in a fixed order.
func unclaimedOf(s *merge.State) []Unclaimed {
	var all []Unclaimed
	for _, h := range s.Unclaimed.SortedHoldings() {
		if len(h.Shares) == 0 {
			all = append(all, Unclaimed{Table: h.Table.ID})
		}
		for _, id := range merge.SortedObjects(h.Shares) {
			o := h.Table.Parts[id]
			u := Unclaimed{Table: h.Table.ID, Object: o.At().InTable()}
			switch sh := h.Shares[id].(type) {
			case *merge.ChainShare:
				u.Rules = len(sh.Rules)
			case *merge.SetShare:
				if sh.Waiting || sh.Passive && len(o.Fragments()) > 1 {
					continue
				}
				u.Elements = sh.Elements.Len()
			}
			all = append(all, u)
		}
	}
	return all
}

// sortedKeys returns a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := slices.AppendSeq(make([]K, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}

var drawItem = rapid.SampledFrom([]string{"counter n0", "counter n1", "limit l0", "quota q0", "flowtable f0"})

// drawItems declares objects, some of them in another way or with another state.
func drawItems(t *rapid.T, tu *desired.TableUpdate) {
	for _, ref := range rapid.SliceOfNDistinct(drawItem, 0, 3, rapid.ID[string]).Draw(t, "objects") {
		odd := rapid.IntRange(0, 5).Draw(t, "odd object") == 0
		pick := func(usual, other string) string {
			if odd {
				return other
			}
			return usual
		}
		switch named(ref).Kind {
		case nft.ObjectCounter:
			tu.PutObjects = append(tu.PutObjects, declared(ref, pick("", "packets 5 bytes 7")))
		case nft.ObjectLimit:
			tu.PutObjects = append(tu.PutObjects, declared(ref, pick("rate 1/second", "rate 2/second")))
		case nft.ObjectQuota:
			tu.PutObjects = append(tu.PutObjects, declared(ref, pick("over 1 mbytes used 0 bytes", "over 1 mbytes used 9 bytes")))
		default:
			tu.PutFlowtables = append(tu.PutFlowtables, flowtable(named(ref).Name, "eth0", pick("eth1", "eth2")))
		}
	}
}

// ruleObjects are the objects and flowtables that a rule refers to.
func ruleObjects(r *compile.Rule) []merge.ObjectID {
	ids := slices.Clone(r.Objects)
	for _, name := range r.Flowtables {
		ids = append(ids, merge.ObjectID{Kind: merge.KindFlowtable, Name: name})
	}
	return ids
}

// verdictChain returns the chain that a verdict map's data leads to, or "".
func verdictChain(data string) string {
	if len(data) <= 4 {
		return ""
	}
	return data[4:]
}

// leadsToObject returns the object that an element of an object map leads to.
func leadsToObject(d *nftset.Set, data string) merge.ObjectID {
	if d.Object == "" {
		return merge.ObjectID{}
	}
	return merge.ObjectID{Kind: d.Object, Name: data}
}
