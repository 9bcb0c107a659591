package compile

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// TestObjectMap declares, packs and reads back maps of objects.
func TestObjectMap(t *testing.T) {
	for _, kind := range nft.ObjectKinds {
		m := &nft.Map{Name: "m", Type: "inet_service : " + string(kind), Flags: []string{"interval"}}
		set, err := CompileMap(nft.FamilyInet, m)
		if strings.HasPrefix(string(kind), "ct ") {
			if err == nil {
				t.Errorf("%s: a map of them was declared, which nft refuses", m.Type)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if set.Object != kind || set.Flags != SetObject|SetInterval || set.Data.Len != 0 {
			t.Errorf("%s: object %q, flags %#x, %d bytes of data", m.Type, set.Object, set.Flags, set.Data.Len)
		}
		if d := set.Declaration(); d.Type != m.Type {
			t.Errorf("declaration %q, want %q", d.Type, m.Type)
		}
		for _, value := range []string{"web", `"web"`, " web "} {
			e, err := set.Pack(nft.Element{Key: "80-90", Value: value})
			if err != nil || e.Data != "web" || e.Key != "\x00\x50" || e.KeyEnd != "\x00\x5a" {
				t.Errorf("element %+v, %v", e, err)
			}
			if got := set.FormatData(e); got != "web" {
				t.Errorf("data %q: want web", got)
			}
		}
		for _, value := range []string{"", "5", `"`, "a b", "web . ssh"} {
			if _, err := set.Pack(nft.Element{Key: "80", Value: value}); err == nil {
				t.Errorf("object %q was packed", value)
			}
		}
		dumped := &Set{Name: set.Name, Key: Type{ID: set.Key.ID, Len: set.Key.Len}, Object: kind, Flags: set.Flags, UserData: set.UserData}
		if dumped.Complete(); !dumped.Map || dumped.Verdict || !dumped.Equal(set) {
			t.Errorf("%+v: want %+v", dumped, set)
		}
	}
	counters, err := CompileMap(nft.FamilyInet, &nft.Map{Name: "m", Type: "mark : counter"})
	if err != nil {
		t.Fatal(err)
	}
	quotas, err := CompileMap(nft.FamilyInet, &nft.Map{Name: "m", Type: "mark : quota"})
	if err != nil {
		t.Fatal(err)
	}
	if counters.Equal(quotas) {
		t.Error("maps of counters and of quotas are equal")
	}
}

// TestObjectsOfRules lists what rules refer to, sorted and without repeats.
func TestObjectsOfRules(t *testing.T) {
	c := &corpus{objects: []ObjectRef{{nft.ObjectCounter, "b"}, {nft.ObjectCounter, "a"}, {nft.ObjectLimit, "a"}, {nft.ObjectCTHelper, "h"}}}
	rule, err := CompileRule(nft.FamilyIP, nft.Rule{Text: "tcp dport 21 limit name a counter name b ct helper set h counter name meta mark map { 1 : a, 2 : b } flow add @f flow offload @f"}, c)
	if err != nil {
		t.Fatal(err)
	}
	want := []ObjectRef{{nft.ObjectCounter, "a"}, {nft.ObjectCounter, "b"}, {nft.ObjectCTHelper, "h"}, {nft.ObjectLimit, "a"}}
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
	if len(rule.encoded.ids) != 1 {
		t.Errorf("%d anonymous sets are numbered: want 1", len(rule.encoded.ids))
	}
	print := func(text string) Fingerprint {
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

// TestObjectMapOfFile reads a map of objects from a file.
func TestObjectMapOfFile(t *testing.T) {
	tables, err := syntax.ParseFile("f", "table ip t {\n map m { type inet_service : counter; flags interval; elements = { 22 : \"ssh\", 80-90 comment \"w\" : web } }\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	m := &tables[0].Maps[0]
	set, err := CompileMap(nft.FamilyIP, m)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"ssh", "web"} {
		if e, err := set.Pack(m.Elements[i]); err != nil || e.Data != want {
			t.Errorf("element %+v: %+v, %v: want %s", m.Elements[i], e, err, want)
		}
	}
	if _, err := CompileMap(nft.FamilyIP, &nft.Map{Name: "m", TypeOf: "tcp dport : counter"}); err == nil {
		t.Error("a map of objects was declared by typeof, which nft refuses")
	}
}
