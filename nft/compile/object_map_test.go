package compile

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// TestObjectMap declares, packs and reads back maps of objects.
func TestObjectMap(t *testing.T) {
	for _, kind := range nft.ObjectKinds {
		m := &nft.Map{Name: "m", Type: "inet_service : " + string(kind), Flags: []string{"interval"}}
		s, err := set.CompileMap(nft.FamilyInet, m)
		if strings.HasPrefix(string(kind), "ct ") {
			if err == nil {
				t.Errorf("%s: a map of them was declared, which nft refuses", m.Type)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Object != kind || s.Flags != set.FlagObject|set.FlagInterval || s.Data.Len != 0 {
			t.Errorf("%s: object %q, flags %#x, %d bytes of data", m.Type, s.Object, s.Flags, s.Data.Len)
		}
		if d := s.Declaration(); d.Type != m.Type {
			t.Errorf("declaration %q, want %q", d.Type, m.Type)
		}
		for _, value := range []string{"web", `"web"`, " web "} {
			e, err := s.Pack(nft.Element{Key: "80-90", Value: value})
			if err != nil || e.Data != "web" || e.Key != "\x00\x50" || e.KeyEnd != "\x00\x5a" {
				t.Errorf("element %+v, %v", e, err)
			}
			if got := s.FormatData(e); got != "web" {
				t.Errorf("data %q: want web", got)
			}
		}
		for _, value := range []string{"", "5", `"`, "a b", "web . ssh"} {
			if _, err := s.Pack(nft.Element{Key: "80", Value: value}); err == nil {
				t.Errorf("object %q was packed", value)
			}
		}
		dumped := &set.Set{Name: s.Name, Key: set.Type{ID: s.Key.ID, Len: s.Key.Len}, Object: kind, Flags: s.Flags, UserData: s.UserData}
		if dumped.Complete(); !dumped.Map || dumped.Verdict || !dumped.Equal(s) {
			t.Errorf("%+v: want %+v", dumped, s)
		}
	}
	counters, err := set.CompileMap(nft.FamilyInet, &nft.Map{Name: "m", Type: "mark : counter"})
	if err != nil {
		t.Fatal(err)
	}
	quotas, err := set.CompileMap(nft.FamilyInet, &nft.Map{Name: "m", Type: "mark : quota"})
	if err != nil {
		t.Fatal(err)
	}
	if counters.Equal(quotas) {
		t.Error("maps of counters and of quotas are equal")
	}
}

// TestObjectsOfRules lists the objects of rules, sorted and without repeats.
func TestObjectsOfRules(t *testing.T) {
	c := &corpus{objects: []object.Ref{{Kind: nft.ObjectCounter, Name: "b"}, {Kind: nft.ObjectCounter, Name: "a"}, {Kind: nft.ObjectLimit, Name: "a"}, {Kind: nft.ObjectCTHelper, Name: "h"}}}
	rule, err := CompileRule(nft.FamilyIP, nft.Rule{Text: "tcp dport 21 limit name a counter name b ct helper set h counter name meta mark map { 1 : a, 2 : b } flow add @f flow offload @f"}, c)
	if err != nil {
		t.Fatal(err)
	}
	want := []object.Ref{{Kind: nft.ObjectCounter, Name: "a"}, {Kind: nft.ObjectCounter, Name: "b"}, {Kind: nft.ObjectCTHelper, Name: "h"}, {Kind: nft.ObjectLimit, Name: "a"}}
	if len(rule.Objects) != len(want) {
		t.Fatalf("objects %v: want %v", rule.Objects, want)
	}
	for i := range want {
		if rule.Objects[i] != want[i] {
			t.Errorf("objects %v: want %v", rule.Objects, want)
		}
	}
	if len(rule.Flowtables) != 1 || rule.Flowtables[0] != "f" {
		t.Errorf("flowtables %v: want f", rule.Flowtables)
	}
	if n := numberedSets(t, rule); n != 1 {
		t.Errorf("%d anonymous sets are numbered: want 1", n)
	}
	print := func(text string) userdata.Fingerprint {
		r, err := CompileRule(nft.FamilyIP, nft.Rule{Text: text}, c)
		if err != nil {
			t.Fatal(err)
		}
		return r.Fingerprint
	}
	if print("counter name meta mark map { 1 : a }") == print("counter name meta mark map { 1 : b }") {
		t.Error("maps to other objects have the same fingerprint")
	}
	if print("counter name meta mark map { 1 : a }") == print("limit name meta mark map { 1 : a }") {
		t.Error("maps to objects of other kinds have the same fingerprint")
	}
}

// TestNoScope refuses objects where nothing is declared.
func TestNoScope(t *testing.T) {
	for _, text := range []string{"counter name x", "flow add @f", "quota name meta mark map { 1 : x }", "limit name meta mark map @m"} {
		if _, err := CompileRule(nft.FamilyIP, nft.Rule{Text: text}, nil); err == nil {
			t.Errorf("%s was compiled without a scope", text)
		}
	}
}
