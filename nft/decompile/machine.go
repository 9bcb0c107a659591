package decompile

import (
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// draft is the text of the expressions so far.
type draft struct {
	// values at their first slot
	regs [expr.Slots]*value
	protocols
	out []syntax.Stmt
}

type decompiler struct {
	draft
	family nft.Family
	scope  Scope
	// without iptables extensions
	exprs []expr.Expr
	// of anonymous sets, by name
	elements map[string][]set.Element
}

func slot(name string, register uint32) int {
	at, ok := expr.Slot(register)
	if !ok {
		fail(name, "there is no register %d", register)
	}
	return int(at)
}

func (d *draft) put(name string, register uint32, v *value) {
	at := slot(name, register)
	for i := at; i < min(at+v.slots(), expr.Slots); i++ {
		d.regs[i] = nil
	}
	d.regs[at] = v
}

func (d *draft) get(name string, register uint32) *value {
	v := d.regs[slot(name, register)]
	if v == nil {
		fail(name, "register %d is empty", register)
	}
	return v
}

func (d *draft) add(s syntax.Stmt) { d.out = append(d.out, s) }

func (d *decompiler) run(exprs []expr.Expr) {
	for i := 0; i < len(exprs); i++ {
		if u, ok := exprs[i].(*expr.Unknown); ok {
			d.xt(u)
			continue
		}
		d.exprs = append(d.exprs, exprs[i])
		if i+1 < len(exprs) && d.between(exprs[i], exprs[i+1]) {
			i++
			d.exprs = append(d.exprs, exprs[i])
			continue
		}
		d.expr(exprs[i])
	}
}

func (d *decompiler) xt(u *expr.Unknown) {
	name, _, _, ok := u.Extension()
	if !ok || strings.Contains(name, `"`) {
		fail(u.Name, "the expression is not known")
	}
	if name != commentMatch {
		d.add(&syntax.XT{Kind: u.Name, Name: name})
	}
}

func (d *decompiler) expr(e expr.Expr) {
	if e = plain(e); e == nil {
		return
	}
	if x := expr.Unwrap(e); !d.load(x) && !d.loadRare(x) && !d.stmt(x) {
		fail(expr.Format(e), "the expression is not known")
	}
}

func (d *decompiler) loadRare(e any) bool {
	switch e := e.(type) {
	case *expr.Bitwise:
		d.put("bitwise", e.Dest, d.bitwise(d.get("bitwise", e.Source), e))
	case *expr.CT:
		d.ct(e)
	case *expr.Exthdr:
		d.exthdr(e)
	case *expr.Socket:
		k := key("socket", selector.SocketKeys, e.Key)
		x := &syntax.Socket{Key: k.Name}
		if k.Name == "cgroupv2" {
			x.Level = e.Level
		}
		d.put("socket", e.Register, keyValue(x, k))
	case *expr.OSF:
		x := &syntax.OSF{TTL: word("osf", e.TTL, "", "loose", "skip"), Key: "name"}
		if e.Version {
			x.Key = "version"
		}
		d.put("osf", e.Register, partValue(x, set.OsfPart))
	case *expr.Xfrm:
		k := key("xfrm", selector.IPsecKeys, e.Key)
		l3, name := cutFamily(k.Name)
		d.put("xfrm", e.Register, keyValue(&syntax.IPsec{Dir: word("xfrm", e.Dir, "in", "out"), Spnum: e.Spnum, L3: l3, Key: name}, k))
	case *expr.Hash:
		x := &syntax.Hash{Seed: e.Seed, Mod: e.Mod, Offset: e.Offset}
		if e.Type == unix.NFT_HASH_JENKINS {
			x.X = d.joined("hash", e.Source, e.Len).expr()
		}
		d.put("hash", e.Dest, number(x))
	default:
		return false
	}
	return true
}

// load handles an expression that loads a register or compares one, and returns false for others.
func (d *decompiler) load(e any) bool {
	switch e := e.(type) {
	case *google.Payload:
		checkPlace("payload", e.Offset, e.Len)
		d.put("payload", e.DestRegister, &value{base: selector.Layer(e.Base) + 1, offset: 8 * e.Offset, bits: 8 * e.Len, order: datatype.BigEndian})
	case *google.Immediate:
		d.put("immediate", e.Register, &value{data: e.Data})
	case *google.Byteorder:
		v := *d.get("byteorder", e.SourceRegister)
		d.finish(&v)
		v.order = datatype.HostEndian + datatype.BigEndian - v.order
		d.put("byteorder", e.DestRegister, &v)
	case *google.Meta:
		k := key("meta", selector.MetaKeys, uint32(e.Key))
		if e.SourceRegister {
			d.assign("meta", &syntax.Meta{Key: k.Name}, k, e.Register)
			break
		}
		v := keyValue(&syntax.Meta{Key: k.Name}, k)
		v.key = k
		d.put("meta", e.Register, v)
	case *expr.Fib:
		d.put("fib", e.Register, fib(e))
	case *google.Rt:
		k := key("rt", selector.RtKeys, uint32(e.Key))
		l3, name := cutFamily(k.Name)
		d.put("rt", e.Register, keyValue(&syntax.Rt{Family: l3, Key: name}, k))
	case *google.Numgen:
		d.put("numgen", e.Register, number(&syntax.Numgen{Mode: word("numgen", e.Type, "inc", "random"), Mod: e.Modulus, Offset: e.Offset}))
	case *google.Lookup:
		d.lookup(e)
	case *google.Cmp:
		d.compare(e)
	case *google.Range:
		d.match(d.get("range", e.Register), word("range", e.Op, "==", "!="), func(v *value) syntax.Expr { return v.span(e.FromData, e.ToData) })
	default:
		return false
	}
	return true
}

// checkPlace fails for bytes beyond the registers or outside packets.
func checkPlace(name string, offset, n uint32) {
	if offset > 1<<16 || n > 4*expr.Slots {
		fail(name, "%d bytes at %d are out of range", n, offset)
	}
}

func number(x syntax.Expr) *value {
	return &value{x: x, typ: datatype.Integer, bits: 32, order: datatype.HostEndian}
}

func word[N ~uint8 | ~uint32](name string, n N, words ...string) string {
	if uint64(n) >= uint64(len(words)) {
		fail(name, "the number %d has no word", n)
	}
	return words[n]
}

func key(name string, keys selector.Keys, number uint32) *selector.Key {
	k := keys.ByNumber(number)
	if k == nil {
		fail(name, "the key %d has no name", number)
	}
	return k
}

func cutFamily(name string) (l3, key string) {
	if l3, key, ok := strings.Cut(name, " "); ok {
		return l3, key
	}
	return "", name
}

func (d *decompiler) ct(e *expr.CT) {
	k := key("ct", selector.CTKeys, e.Key)
	l3, name := cutFamily(k.Name)
	x := &syntax.CT{Dir: word("ct", uint8(e.Direction), "", "original", "reply"), L3: l3, Key: name}
	if e.Dest == 0 {
		d.assign("ct", x, k, e.Source)
		return
	}
	v := keyValue(x, k)
	v.key = k
	switch {
	case k.Type != nil:
	case k.Bits != 0:
		v.typ = datatype.InetService
	case d.network == &selector.HeaderIP6:
		v.typ, v.bits = datatype.IPv6Addr, datatype.IPv6Addr.Bits
	default:
		v.typ, v.bits = datatype.IPv4Addr, datatype.IPv4Addr.Bits
	}
	d.put("ct", e.Dest, v)
}

func fib(e *expr.Fib) *value {
	part, ok := set.FIBPart(e.Result)
	if !ok {
		fail("fib", "the result has no name")
	}
	v := partValue(&syntax.FIB{Inputs: expr.Words(e.Flags, expr.FibInputs), Result: expr.FibResults[e.Result]}, part)
	if e.Flags&unix.NFTA_FIB_F_PRESENT != 0 {
		v.typ = datatype.Boolean
	}
	return v
}

func (d *draft) exthdr(e *expr.Exthdr) {
	checkPlace("exthdr", e.Offset, e.Len)
	v := &value{extension: true, op: e.Op, ext: e.Type, offset: 8 * e.Offset, bits: 8 * e.Len, order: datatype.BigEndian}
	switch {
	case e.Present:
		v.x, v.typ = selector.ExthdrAt(e.Op, e.Type, 0, 0), datatype.Boolean
		d.put("exthdr", e.Dest, v)
	case e.Dest != 0:
		d.put("exthdr", e.Dest, v)
	case e.Source != 0:
		d.resolve(v)
		d.add(&syntax.Assign{Target: v.x, Value: d.argument("exthdr", e.Source, v)})
	default:
		d.add(&syntax.ResetOption{Option: selector.ExthdrAt(e.Op, e.Type, 0, 0)})
	}
}

func (d *decompiler) dynset(e *expr.Dynset) {
	s := d.set("dynset", e.SetName)
	elem := &syntax.Elem{Key: d.keyOf("dynset", e.Key, s.Key).expr(), Timeout: e.Timeout}
	for _, x := range e.Exprs {
		stmt, err := expr.StatefulStmt(x)
		if err != nil {
			panic(failure{err})
		}
		elem.Stmts = append(elem.Stmts, stmt)
	}
	if e.Data != 0 {
		elem.Value = d.keyOf("dynset", e.Data, s.Data).expr()
	}
	if s.Flags&set.FlagAnonymous != 0 {
		d.add(&syntax.Meter{Name: s.Name, Size: s.Size, Elem: elem})
		return
	}
	d.add(&syntax.Dynamic{Op: word("dynset", e.Op, "add", "update", "delete"), Set: &syntax.SetRef{Name: s.Name}, Elem: elem})
}

func (d *decompiler) objref(kind nft.ObjectKind, ref syntax.Expr) {
	if kind == "" {
		fail("objref", "the kind of the object has no name")
	}
	d.add(&syntax.ObjectRef{Kind: kind, Ref: ref})
}

func (d *decompiler) objrefMap(e *expr.ObjrefMap) {
	s := d.set("objref", e.SetName)
	d.objref(s.Object, &syntax.Map{Key: d.keyOf("objref", e.Register, s.Key).expr(), Table: d.table(s, d.keyOf("objref", e.Register, s.Key))})
}
