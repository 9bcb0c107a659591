package set

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Flags of sets: enum nft_set_flags of linux/netfilter/nf_tables.h.
const (
	FlagAnonymous = 0x1
	FlagConstant  = 0x2
	FlagInterval  = 0x4
	FlagMap       = 0x8
	FlagTimeout   = 0x10
	FlagEval      = 0x20
	FlagObject    = 0x40
	FlagConcat    = 0x80
	FlagExpr      = 0x100
)

var flagWords = []string{1: "constant", 2: "interval", 4: "timeout", 5: "dynamic"}

// VerdictType is the data type of verdict maps (NFT_DATA_VERDICT).
const VerdictType = 0xffffff00

// jiffy is the longest tick of Linux (HZ=100); the kernel rounds timeouts to ticks.
const jiffy = 10 * time.Millisecond

// Compile compiles a set's declaration without its elements. Errors in the typeof declaration wrap
// a *syntax.Error with a position in s.TypeOf.
func Compile(_ nft.Family, s *nft.Set) (*Set, error) {
	out, err := compileSet(s, false)
	if err != nil {
		return nil, fmt.Errorf("compile set %s: %w", s.Name, err)
	}
	return out, nil
}

// CompileMap is Compile for a map.
func CompileMap(_ nft.Family, m *nft.Map) (*Set, error) {
	out, err := compileSet((*nft.Set)(m), true)
	if err != nil {
		return nil, fmt.Errorf("compile map %s: %w", m.Name, err)
	}
	return out, nil
}

func compileSet(s *nft.Set, isMap bool) (*Set, error) {
	if err := datatype.CheckName(s.Name); err != nil {
		return nil, err
	}
	if err := userdata.CheckComment(s.Comment); err != nil {
		return nil, err
	}
	decl, err := declaredTypes(s)
	if err != nil {
		return nil, err
	}
	switch {
	case isMap && !decl.isMap:
		return nil, fmt.Errorf("%s %q has no data: write KEY : DATA, or declare a set", decl.word, decl.text)
	case !isMap && decl.isMap:
		return nil, fmt.Errorf("%s %q has data: declare a map", decl.word, decl.text)
	}
	if err := decl.unlistable(); err != nil {
		return nil, err
	}
	out := &Set{
		Name: s.Name, Map: isMap, Verdict: decl.verdict, Object: decl.object, DataInterval: decl.interval,
		Timeout: s.Timeout, GCInterval: s.GCInterval, Size: s.Size,
		AutoMerge: s.AutoMerge, Comment: s.Comment,
	}
	if out.Key, err = NewType(decl.key); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	switch {
	case decl.object != "":
	case decl.verdict:
		out.Data = Type{ID: VerdictType, Names: []string{datatype.Verdict.Name}}
	case isMap:
		if out.Data, err = NewType(decl.data); err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		if decl.interval {
			out.Data.Len *= 2
		}
		if out.Data.Len > MaxKey {
			return nil, fmt.Errorf("data has %d bytes: the kernel takes at most %d", out.Data.Len, MaxKey)
		}
	}
	if err := out.setOptions(s); err != nil {
		return nil, err
	}
	if out.Stateful, err = declaredStateful(s.Stateful); err != nil {
		return nil, err
	}
	if err := out.CheckStatements(out.Stateful); err != nil {
		return nil, err
	}
	if len(out.Stateful) > 1 {
		out.Flags |= FlagExpr
	}
	decl.userData(out)
	if len(out.UserData) > userdata.Max {
		return nil, fmt.Errorf("%s %q and the comment take %d bytes in the kernel: at most %d are possible; shorten the comment or use type in place of typeof", decl.word, decl.text, len(out.UserData), userdata.Max)
	}
	return out, nil
}

func (s *Set) setOptions(decl *nft.Set) error {
	switch {
	case s.Object != "":
		s.Flags |= FlagObject
	case s.Map:
		s.Flags |= FlagMap
	}
	for i, flag := range decl.Flags {
		if slices.Contains(decl.Flags[:i], flag) {
			return fmt.Errorf("flag %s is given twice", flag)
		}
		bit := slices.Index(flagWords, flag)
		if bit < 0 || flag == "" {
			return fmt.Errorf("unknown flag %q: want constant, interval, timeout or dynamic", flag)
		}
		s.Flags |= 1 << bit
	}
	if s.Timeout < 0 || s.GCInterval < 0 {
		return errors.New("negative timeout or gc-interval")
	}
	if s.Timeout > 0 {
		if s.Timeout < time.Millisecond {
			return fmt.Errorf("timeout %v: the smallest is 1ms", s.Timeout)
		}
		s.Flags |= FlagTimeout
	}
	if s.Flags&FlagInterval != 0 && len(s.Key.Fields) > 0 {
		s.Flags |= FlagConcat
	}
	switch decl.Policy {
	case "", "performance":
	case "memory":
		s.Memory = true
	default:
		return fmt.Errorf("unknown policy %q: want performance or memory", decl.Policy)
	}
	switch has := func(bits uint32) bool { return s.Flags&bits == bits }; {
	case has(FlagInterval | FlagEval):
		return errors.New("flags interval and dynamic exclude each other in the kernel")
	case has(FlagConstant|FlagEval) || has(FlagConstant|FlagTimeout):
		return errors.New("flag constant excludes timeout and dynamic")
	case s.GCInterval > 0 && !has(FlagTimeout):
		return errors.New("gc-interval needs flag timeout")
	case s.GCInterval > 0 && (s.GCInterval < time.Millisecond || s.GCInterval.Milliseconds() > 1<<32-1):
		return fmt.Errorf("gc-interval %v: want 1ms to %s", s.GCInterval, datatype.FormatDuration((1<<32-1)*time.Millisecond))
	case s.AutoMerge && !has(FlagInterval):
		return errors.New("auto-merge needs flag interval")
	}
	return nil
}

// Equal reports whether a set declared as o can stay if s is wanted. Timeouts may differ by less
// than a kernel tick.
func (s *Set) Equal(o *Set) bool {
	return s.Name == o.Name && s.Map == o.Map && s.Verdict == o.Verdict && s.Object == o.Object &&
		s.Key.ID == o.Key.ID && s.Key.Len == o.Key.Len &&
		s.Data.ID == o.Data.ID && (s.Verdict || s.Data.Len == o.Data.Len) &&
		s.Flags == o.Flags && sameSize(s, o) && s.Memory == o.Memory &&
		near(s.Timeout, o.Timeout) && near(s.GCInterval, o.GCInterval) &&
		slices.Equal(s.Stateful, o.Stateful) && string(s.UserData) == string(o.UserData)
}

// dynamicSize is the size that the first rule that adds elements gives a set without a size
// (nft_dynset_init).
const dynamicSize = 0xffff

// sameSize treats a missing size like dynamicSize in sets that rules can fill.
func sameSize(s, o *Set) bool {
	if s.Size == o.Size {
		return true
	}
	return s.Flags&(FlagEval|FlagTimeout) != 0 && min(s.Size, o.Size) == 0 && max(s.Size, o.Size) == dynamicSize
}

func near(a, b time.Duration) bool { return max(a-b, b-a) < jiffy && (a == 0) == (b == 0) }

// Part is a part of a key or of data.
type Part struct {
	Type *datatype.Type
	// Size is the unpadded width in bytes, Bits the numbers' in bits.
	Size, Bits int
	// Order is the byte order of numbers: the expression's for types without an order.
	Order datatype.Order
	// Raw means data written to raw payload.
	Raw bool
}

// Padded returns Size rounded up to a multiple of four.
func (p Part) Padded() int { return (p.Size + 3) &^ 3 }

// Text reports whether values are strings.
func (p Part) Text() bool { return p.Type == datatype.String || p.Type == datatype.IfName }

func partOf(t *datatype.Type) Part {
	return Part{Type: t, Size: t.Len(), Bits: int(t.Bits), Order: t.Order}
}

// maxParts six-bit numbers fit into NFTA_SET_KEY_TYPE. nft(8) misreads longer concatenations.
const maxParts = 5

// NewType makes the Type of a part or concatenation.
func NewType(parts []Part) (Type, error) {
	t := Type{parts: parts}
	for _, p := range parts {
		switch {
		case p.Type == datatype.Verdict:
			return Type{}, errors.New("verdict cannot be a part of a key or of a concatenation")
		case p.Size == 0:
			return Type{}, fmt.Errorf("type %s has no width of its own: use typeof with the expression that is looked up", p.Type)
		}
		t.ID = t.ID<<6 | p.Type.ID
		t.Names = append(t.Names, p.Type.Name)
	}
	switch len(parts) {
	case 0:
		return Type{}, errors.New("no type given")
	case 1:
		t.Len = uint32(parts[0].Size)
	default:
		if len(parts) > maxParts {
			return Type{}, fmt.Errorf("concatenation of %d parts: nft(8) can list at most %d", len(parts), maxParts)
		}
		for _, p := range parts {
			t.Len += uint32(p.Padded())
			t.Fields = append(t.Fields, uint32(p.Size))
		}
	}
	if t.Len > MaxKey {
		return Type{}, fmt.Errorf("%s has %d bytes: the kernel takes at most %d", strings.Join(t.Names, " . "), t.Len, MaxKey)
	}
	return t, nil
}
