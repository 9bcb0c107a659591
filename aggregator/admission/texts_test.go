package admission

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/printable"
	"github.com/weft-proxy/weft/nft/set"
)

// everything is a valid table with a value in almost every field.
func everything() *weftv1.Table {
	return &weftv1.Table{
		Family: "inet", Name: "t", Comment: "table",
		Objects:    []*weftv1.Object{{Kind: "counter", Name: "o", Text: "packets 0 bytes 0", Comment: "object"}},
		Flowtables: []*weftv1.Flowtable{{Name: "f", Hook: "ingress", Priority: "0", Devices: []string{"eth0"}}},
		Sets: []*weftv1.Set{{
			Name: "s", Type: "ipv4_addr", Flags: []string{"timeout"}, Comment: "set", Policy: "memory", Stateful: []string{"counter"},
			Elements: []*weftv1.Element{{Key: "10.0.0.1", Comment: "element", State: &weftv1.ElementState{Stateful: []string{"counter packets 0 bytes 0"}}}},
		}, {Name: "ifs", Type: "ifname", Elements: []*weftv1.Element{{Key: "eth0"}}}, {Name: "ty", Typeof: "ip saddr"}},
		Maps: []*weftv1.Set{{Name: "m", Type: "ipv4_addr : verdict", Elements: []*weftv1.Element{{Key: "10.0.0.1", Value: "drop"}}}},
		Chains: []*weftv1.Chain{{
			Name: "c", Type: "filter", Hook: "input", Priority: "filter", Policy: "accept", Comment: "chain",
			Rules: []*weftv1.Rule{{Text: `log prefix "rule" drop`, Comment: "rule"}},
		}},
	}
}

// strings calls f with a function that sets each string of a message, one after the other.
func eachString(m protoreflect.Message, path string, f func(path, old string, set func(string))) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := path + "." + string(field.Name())
		switch {
		case field.IsList():
			for i := range v.List().Len() {
				if field.Kind() == protoreflect.StringKind {
					f(name, v.List().Get(i).String(), func(s string) { v.List().Set(i, protoreflect.ValueOfString(s)) })
				} else if field.Message() != nil {
					eachString(v.List().Get(i).Message(), fmt.Sprintf("%s[%d]", name, i), f)
				}
			}
		case field.Message() != nil:
			eachString(v.Message(), name, f)
		case field.Kind() == protoreflect.StringKind:
			f(name, v.String(), func(s string) { m.Set(field, protoreflect.ValueOfString(s)) })
		}
		return true
	})
}

// TestControlCharactersAreRefused puts control characters into every string of a snapshot.
func TestControlCharactersAreRefused(t *testing.T) {
	must(t, errorOf(admit(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{everything()}})))
	tried := map[string]bool{}
	for _, bad := range []string{"\x1b[31m", "\x00", "\x7f", "\u009b", "\u202e", "\u2066", "\u2028", "\xff"} {
		m := everything()
		eachString(m.ProtoReflect(), "table", func(path, old string, set func(string)) {
			tried[path] = true
			for _, text := range []string{old + bad, bad + old, strings.Replace(old, `"rule"`, `"ru`+bad+`le"`, 1)} {
				if text == old {
					continue
				}
				set(text)
				_, err := admit(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{proto.CloneOf(m)}})
				var rejected *RejectedError
				if !errors.As(err, &rejected) {
					t.Errorf("%s = %q is accepted", path, text)
				}
			}
			set(old)
		})
		for _, f := range []string{
			`table inet t { chain c { log prefix "a` + bad + `" ; } }`,
			`table inet t { chain c { accept comment "a` + bad + `" ; } }`,
			`table inet t { set s { type ifname ; elements = { "a` + bad + `" } ; } }`,
			`table inet t { set s { type ipv4_addr ; elements = { 10.0.0.1 comment "a` + bad + `" } ; } }`,
		} {
			if _, err := admit(&weftv1.Fragment{Name: "f", Nft: f}); err == nil {
				t.Errorf("%q is accepted", f)
			}
		}
	}
	if len(tried) < 25 {
		t.Errorf("only %d strings were tried", len(tried))
	}
	ok := everything()
	ok.Chains[0].Rules[0].Text = "tcp dport 80\t counter\t\tdrop"
	ok.Chains[0].Comment = "größe 東京"
	must(t, errorOf(admit(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{ok}})))
}

// TestControlCharactersInPatches puts one into the strings that only patches have.
func TestControlCharactersInPatches(t *testing.T) {
	b := NewSnapshot(Config{}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
	b.AddFragment(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{everything()}})
	must(t, errorOf(b.Finish()))
	own, _ := b.Declared()
	for _, e := range []*weftv1.ElementPatch{
		{Set: "ifs", Add: []*weftv1.Element{{Key: "a\x1b"}}},
		{Set: "ifs", Remove: []string{"a\u202e"}},
		{Set: "ifs\x1b", Remove: []string{"a"}},
	} {
		b := NewPatch(Config{}, desired.Key{Publisher: "p", Name: "f"}, own, nowhere{})
		b.AddPatch(&weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{Family: "inet", Name: "t", Elements: []*weftv1.ElementPatch{e}}}})
		if _, err := b.Finish(); err == nil {
			t.Errorf("%v is accepted", e)
		}
	}
}

// TestStoredTextsAreAccepted restores what an older version has accepted.
func TestStoredTextsAreAccepted(t *testing.T) {
	b := NewSnapshot(Config{Stored: true}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
	b.AddFragment(&weftv1.Fragment{Name: "f", Nft: "table inet t { chain c { log prefix \"a\x1b\" ; } }"})
	must(t, errorOf(b.Finish()))
}

func TestDurationsThatOverflow(t *testing.T) {
	tooLong := []*durationpb.Duration{{Seconds: 1 << 62}, {Seconds: 1 << 34}, {Seconds: -1}, {Seconds: -1 << 40}, {Seconds: 1, Nanos: -1}}
	for _, d := range tooLong {
		for name, change := range map[string]func(*weftv1.Set){
			"timeout":     func(s *weftv1.Set) { s.Timeout = d },
			"gc_interval": func(s *weftv1.Set) { s.Timeout, s.GcInterval = durationpb.New(time.Hour), d },
			"element":     func(s *weftv1.Set) { s.Elements[0].Timeout = d },
			"expires": func(s *weftv1.Set) {
				s.Elements[0].Timeout = durationpb.New(time.Hour)
				s.Elements[0].State = &weftv1.ElementState{Expires: d}
			},
		} {
			m := everything()
			change(m.Sets[0])
			if _, err := admit(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{m}}); err == nil {
				t.Errorf("%s of %v is accepted", name, d)
			}
		}
		if _, err := admit(&weftv1.Fragment{Name: "f", Expiration: &weftv1.Fragment_Ttl{Ttl: d}, Tables: []*weftv1.Table{everything()}}); err == nil {
			t.Errorf("ttl %v is accepted", d)
		}
	}
	for _, text := range []string{"4611686018427387904s", "99999999999d", "200000d", "4294967296s"} {
		for _, f := range []string{
			"table ip t { set s { type ipv4_addr ; timeout %s ; } }",
			"table ip t { set s { type ipv4_addr ; flags timeout ; gc-interval %s ; } }",
			"table ip t { set s { type ipv4_addr ; flags timeout ; elements = { 10.0.0.1 timeout %s } ; } }",
			"table ip t { set s { type ipv4_addr ; flags dynamic,timeout ; } ; chain c { add @s { ip saddr timeout %s } ; } }",
		} {
			if _, err := admit(&weftv1.Fragment{Name: "f", Nft: fmt.Sprintf(f, text)}); err == nil {
				t.Errorf(f+" is accepted", text)
			}
		}
	}
}

// TestViolationsAreShort refuses updates with long strings.
func TestViolationsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	m := everything()
	var worst int
	eachString(m.ProtoReflect(), "table", func(path, old string, set func(string)) {
		for _, text := range []string{long, old + long, `"` + long} {
			set(text)
			_, err := admit(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{proto.CloneOf(m)}})
			var rejected *RejectedError
			if errors.As(err, &rejected) {
				size := len(rejected.Error())
				for _, v := range rejected.Violations {
					size += proto.Size(v)
				}
				worst = max(worst, size)
				if size > 2*MaxViolations*maxMessage {
					t.Errorf("%s: the rejection has %d bytes", path, size)
				}
			}
		}
		set(old)
	})
	if worst == 0 {
		t.Error("nothing was refused")
	}
	v := Shorten(&weftv1.Violation{Message: strings.Repeat("ü", maxMessage), Object: &weftv1.ObjectName{Kind: long, Key: long}})
	if again := Shorten(proto.CloneOf(v)); !proto.Equal(v, again) || printable.Index(v.GetMessage()) >= 0 {
		t.Errorf("%v is shortened again", v)
	}
}

var weft = nft.TableID{Family: nft.FamilyIP, Name: "weft"}

// TestOpName names the object of each op of package kernel.
func TestOpName(t *testing.T) {
	s := &set.Set{Name: "s"}
	names := map[string]string{}
	for op, want := range map[kernel.Op]string{
		&kernel.AddTable{Table: weft}:                                                              "table ip weft",
		&kernel.DeleteTable{Table: weft}:                                                           "table ip weft",
		&kernel.AddChain{Table: weft, Chain: &object.Chain{Name: "c"}}:                             "chain ip weft c",
		&kernel.DeleteChain{Table: weft, Name: "c"}:                                                "chain ip weft c",
		&kernel.AddRule{Table: weft, Chain: "c"}:                                                   "rule ip weft c",
		&kernel.DeleteRule{Table: weft, Chain: "c", Handle: &kernel.Handle{N: 7}}:                  "rule ip weft c handle 7",
		&kernel.AddSet{Table: weft, Set: s}:                                                        "set ip weft s",
		&kernel.DeleteSet{Table: weft, Name: "s"}:                                                  "set ip weft s",
		&kernel.FlushSet{Table: weft, Name: "s"}:                                                   "set ip weft s",
		&kernel.AddElements{Table: weft, Set: s}:                                                   "set ip weft s",
		&kernel.DeleteElements{Table: weft, Set: s}:                                                "set ip weft s",
		&kernel.AddObject{Table: weft, Object: &object.Object{Kind: nft.ObjectCounter, Name: "o"}}: "counter ip weft o",
		&kernel.DeleteObject{Table: weft, Ref: object.Ref{Kind: nft.ObjectCounter, Name: "o"}}:     "counter ip weft o",
		&kernel.AddFlowtable{Table: weft, Flowtable: &object.Flowtable{Name: "f"}}:                 "flowtable ip weft f",
		&kernel.DeleteFlowtable{Table: weft, Name: "f"}:                                            "flowtable ip weft f",
	} {
		// The keys are pointers because some ops cannot be compared.
		v := reflect.ValueOf(op).Elem().Interface().(kernel.Op) //nolint:forcetypeassert // an op
		if got := OpName(v).Text(); got != want {
			t.Errorf("%T: %q, want %q", v, got, want)
		}
		names[reflect.TypeOf(v).Name()] = want
	}
	source, err := os.ReadFile("../../nft/kernel/op.go")
	must(t, err)
	all := regexp.MustCompile(`(?m)^func \(o (\w+)\) table\(\)`).FindAllSubmatch(source, -1)
	if len(all) < 15 {
		t.Errorf("found only %d ops", len(all))
	}
	for _, m := range all {
		if names[string(m[1])] == "" {
			t.Errorf("the op %s is not tested", m[1])
		}
	}
	if OpName(nil) != nil {
		t.Error("no op has a name")
	}
}

func TestPlaceName(t *testing.T) {
	for want, p := range map[string]desired.Place{
		"":                              {},
		"table ip weft":                 {Table: weft},
		"ct helper ip weft ftp":         {Table: weft, Kind: "ct helper", Name: "ftp"},
		"rule ip weft input #3":         {Table: weft, Kind: "chain", Name: "input", Rule: 3},
		"element ip weft m { 1 . tcp }": {Table: weft, Kind: "map", Name: "m", Key: "1 . tcp"},
	} {
		if got := PlaceName(p).Text(); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
}

func TestCheckKey(t *testing.T) {
	for key, want := range map[desired.Key]string{
		{Publisher: "p", Name: "f-1.x_2"}:               "",
		{Publisher: "0", Name: strings.Repeat("f", 63)}: "",
		{Publisher: "", Name: "f"}:                      "publisher name is empty",
		{Publisher: "p", Name: ""}:                      "fragment name is empty",
		{Publisher: "P", Name: "f"}:                     `publisher name "P": want only [a-z0-9._-]`,
		{Publisher: "p", Name: "-f"}:                    `fragment name "-f": want a letter or digit first`,
		{Publisher: "p", Name: ".."}:                    `fragment name "..": want a letter or digit first`,
		{Publisher: "p", Name: "_f"}:                    `fragment name "_f": want a letter or digit first`,
		{Publisher: "p", Name: "a/b"}:                   `fragment name "a/b": want only [a-z0-9._-]`,
		{Publisher: "p", Name: "a b\x00"}:               `fragment name "a b\x00": want only [a-z0-9._-]`,
		{Publisher: "p", Name: "ü"}:                     `fragment name "ü": want only [a-z0-9._-]`,
		{Publisher: "p", Name: strings.Repeat("f", 64)}: `fragment name "ffffffffffffffff"... has 64 bytes: at most 63 are allowed`,
	} {
		err := CheckKey(key)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrInvalidName) || err.Error() != "invalid name: "+want) {
			t.Errorf("%q: error %v, want %s", key, err, want)
		}
	}
}

// TestKernelRejection has the refusals of the kernel for which there is advice, and some for
// which there is none.
func TestKernelRejection(t *testing.T) {
	table := nft.TableID{Family: nft.FamilyIP, Name: "t"}
	rule := kernel.AddRule{Table: table, Chain: "c", Rule: &compile.Rule{}}
	elements := kernel.AddElements{Table: table, Set: &set.Set{Name: "s"}}
	counter := kernel.AddObject{Table: table, Object: &object.Object{Kind: "ct helper", Name: "o"}}
	flowtable := kernel.AddFlowtable{Table: table, Flowtable: &object.Flowtable{Name: "f"}}
	for _, tt := range []struct {
		op     kernel.Op
		errno  syscall.Errno
		object string
		advice string
	}{
		{kernel.AddTable{Table: table}, syscall.EOPNOTSUPP, "table ip t", ": its flags cannot change together with its base chains"},
		{kernel.AddTable{Table: table}, syscall.EPERM, "table ip t", ""},
		{counter, syscall.ENOENT, "ct helper ip t o", ": the kernel has no ct helper like this (perhaps a module is not loaded)"},
		{counter, syscall.EOPNOTSUPP, "ct helper ip t o", ": the kernel has no ct helper like this"},
		{counter, syscall.EBUSY, "ct helper ip t o", ""},
		{flowtable, syscall.ENOENT, "flowtable ip t f", ": a device does not exist, or the kernel has no flowtables for this family"},
		{flowtable, syscall.EOPNOTSUPP, "flowtable ip t f", ": the kernel has no flowtables (module nf_flow_table)"},
		{flowtable, syscall.EINVAL, "flowtable ip t f", ": the kernel has no flowtables (module nf_flow_table)"},
		{flowtable, syscall.EEXIST, "flowtable ip t f", ""},
		{elements, syscall.EEXIST, "set ip t s", ": it overlaps another element, or repeats one with another value"},
		{elements, syscall.ENFILE, "set ip t s", ": the set is full: raise its size"},
		{elements, syscall.ELOOP, "set ip t s", loopAdvice},
		{elements, syscall.ENOMEM, "set ip t s", ""},
		{rule, syscall.EOPNOTSUPP, "rule ip t c", ": a statement is not possible at this chain's type and hook"},
		{rule, syscall.EMLINK, "rule ip t c", loopAdvice},
		{rule, syscall.EINVAL, "rule ip t c", ""},
		{kernel.DeleteSet{Table: table, Name: "s"}, syscall.EBUSY, "set ip t s", ""},
	} {
		r := KernelRejection(desired.Key{Publisher: "p", Name: "f"}, &kernel.BatchError{Op: tt.op, Errno: tt.errno})
		v := r.Violations[0]
		if len(r.Violations) != 1 || v.GetReason() != weftv1.Violation_REASON_KERNEL || v.GetObject().Text() != tt.object {
			t.Errorf("%T and %v: %v", tt.op, tt.errno, r)
		}
		if !strings.HasPrefix(v.GetMessage(), "the kernel refuses it: ") || !strings.Contains(v.GetMessage(), tt.advice) ||
			tt.advice == "" && strings.HasSuffix(v.GetMessage(), ")") {
			t.Errorf("%T and %v: %s, want the advice %q", tt.op, tt.errno, v.GetMessage(), tt.advice)
		}
		if tt.advice == "" {
			if advice := adviceOn(&kernel.BatchError{Op: tt.op, Errno: tt.errno}); advice != "" {
				t.Errorf("%T and %v: advice %q", tt.op, tt.errno, advice)
			}
		}
	}
	r := KernelRejection(desired.Key{Publisher: "p", Name: "f"}, errors.New("too large"))
	if got := r.Error(); got != "fragment p/f rejected: the kernel refuses it: too large" {
		t.Errorf("error %s", got)
	}
}
