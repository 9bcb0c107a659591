package lint

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
)

type markKind int

const (
	packetMark markKind = iota
	connMark
)

// String returns the mark's name in a sentence.
func (k markKind) String() string { return [...]string{"packet's mark", "connection's mark"}[k] }

type markUse struct {
	kind         markKind
	write, match uint32
	table        *eval.Table
	chain        *eval.Chain
	rule         *eval.Rule
	place        Place
}

func (l *linter) marks() {
	var uses []markUse
	for i := range l.rules.Tables {
		t := &l.rules.Tables[i]
		for j := range t.Chains {
			c := &t.Chains[j]
			rules := rulesOf(c)
			for k := range rules {
				for _, u := range marksOf(&rules[k]) {
					u.table, u.chain, u.rule = t, c, &rules[k]
					uses = l.addUse(uses, u)
				}
			}
		}
	}
	// a matching party expects another to write the bits
	written := make(map[markOwner]uint32)
	for _, u := range uses {
		written[markOwner{u.place.Party.key(), u.kind}] |= u.write
	}
	// one finding for two parties, preferably of a match
	done := make(map[[2]markOwner]bool)
	for _, matched := range []bool{true, false} {
		for _, w := range uses {
			for _, u := range uses {
				a, b := markOwner{w.place.Party.key(), w.kind}, markOwner{u.place.Party.key(), u.kind}
				if a.kind != b.kind || a == b || done[[2]markOwner{a, b}] || done[[2]markOwner{b, a}] {
					continue
				}
				u.match &= written[b]
				done[[2]markOwner{a, b}] = l.collide(&w, &u, matched)
			}
		}
	}
}

type markOwner struct {
	party string
	kind  markKind
}

// addUse adds only the first place of a party.
func (l *linter) addUse(uses []markUse, u markUse) []markUse {
	u.place = l.place(u.table, u.chain, u.rule)
	same := func(o markUse) bool {
		return o.kind == u.kind && o.place.Party.key() == u.place.Party.key() && o.write == u.write && o.match == u.match
	}
	if len(uses) == maxTrials || slices.ContainsFunc(uses, same) {
		return uses
	}
	return append(uses, u)
}

// The other party's rule matches or, if matched is false, writes the bits.
func (l *linter) collide(w, u *markUse, matched bool) bool {
	f := Finding{ID: MarkCollision, Subject: w.place, Other: u.place, Remedy: "Let the parties use different bits, and write and compare only these with a mask"}
	switch {
	case matched && w.write&u.match != 0:
		f.Text = fmt.Sprintf("%s writes bits %#x of the %s, which %s matches", w.place.Party, w.write&u.match, w.kind, u.place.Party)
	case !matched && w.write&u.write != 0:
		f.Text = fmt.Sprintf("%s and %s both write bits %#x of the %s", w.place.Party, u.place.Party, w.write&u.write, w.kind)
	default:
		return false
	}
	if w.write == math.MaxUint32 || u.write == math.MaxUint32 {
		f.Remedy = "Let the parties use different bits. A rule that sets the whole mark overwrites those of all others: set bits with a mask, as in \"meta mark set meta mark or 0x10\""
	}
	l.report(f, w.rule, u.rule)
	return true
}

func marksOf(r *eval.Rule) []markUse {
	m := markReader{registers: make(map[uint32]markValue)}
	for _, e := range r.Exprs {
		switch e := expr.Unwrap(e).(type) {
		case *expr.Bitwise:
			v, ok := m.registers[start(e.Source)]
			clear(m.registers)
			if ok && e.Op == expr.BitwiseBool && len(e.Mask) == 4 && len(e.Xor) == 4 {
				mask, xor := binary.NativeEndian.Uint32(e.Mask), binary.NativeEndian.Uint32(e.Xor)
				m.registers[start(e.Dest)] = markValue{v.kind, v.mask & mask, v.xor&mask ^ xor}
			}
		case *expr.CT:
			m.mark(connMark, e.Key == unix.NFT_CT_MARK, e.Source, e.Dest)
		case *google.Meta:
			source, dest := uint32(0), e.Register
			if e.SourceRegister {
				source, dest = dest, 0
			}
			m.mark(packetMark, e.Key == google.MetaKeyMARK, source, dest)
		case *expr.Unknown:
			m.extension(e)
		case *google.Cmp:
			m.match(e.Register)
		case *google.Range:
			m.match(e.Register)
		case *google.Lookup:
			m.match(e.SourceRegister)
			if e.IsDestRegSet {
				clear(m.registers)
			}
		default:
			clear(m.registers)
		}
	}
	return m.out
}

type markReader struct {
	// only the last register loaded with a mark: later loads may overlap it
	registers map[uint32]markValue
	out       []markUse
}

// (mark & mask) ^ xor in a register
type markValue struct {
	kind      markKind
	mask, xor uint32
}

// source is 0 for a load
func (m *markReader) mark(kind markKind, isMark bool, source, dest uint32) {
	switch {
	case source == 0:
		if clear(m.registers); isMark {
			m.registers[start(dest)] = markValue{kind, math.MaxUint32, 0}
		}
	case isMark:
		m.write(kind, source)
	}
}

func (m *markReader) match(register uint32) {
	if v, ok := m.registers[start(register)]; ok && v.mask != 0 {
		m.out = append(m.out, markUse{kind: v.kind, match: v.mask})
	}
}

func (m *markReader) write(kind markKind, register uint32) {
	bits := uint32(math.MaxUint32)
	if v, ok := m.registers[start(register)]; ok && v.kind == kind {
		bits = ^v.mask | v.xor
	}
	if bits != 0 {
		m.out = append(m.out, markUse{kind: kind, write: bits})
	}
}

// extension reads xt_mark_mtinfo1 and xt_connmark_mtinfo1 (mark, mask, invert), xt_mark_tginfo2
// (mark, mask), and xt_connmark_tginfo1 (ctmark, ctmask, nfmask, mode).
func (m *markReader) extension(e *expr.Unknown) {
	name, _, info, ok := e.Extension()
	if !ok || len(info) < 8 {
		return
	}
	first, second := binary.NativeEndian.Uint32(info), binary.NativeEndian.Uint32(info[4:])
	add := func(u markUse) {
		if u.match|u.write != 0 {
			m.out = append(m.out, u)
		}
	}
	switch {
	case e.Name == "match" && name == "mark":
		add(markUse{kind: packetMark, match: second})
	case e.Name == "match" && name == "connmark":
		add(markUse{kind: connMark, match: second})
	case e.Name == "target" && name == "MARK":
		add(markUse{kind: packetMark, write: first | second})
	case e.Name == "target" && name == "CONNMARK" && len(info) >= 13:
		const set, save, restore = 0, 1, 2
		nfmask := binary.NativeEndian.Uint32(info[8:])
		switch info[12] {
		case set:
			add(markUse{kind: connMark, write: first | second})
		case save:
			add(markUse{kind: connMark, write: second})
		case restore:
			add(markUse{kind: packetMark, write: nfmask})
		}
	}
}
