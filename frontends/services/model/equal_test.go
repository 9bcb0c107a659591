package model

import (
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// change sets a value to another one, of whatever type.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.MustParseAddr("192.0.2.77")))
		return
	case netip.Prefix:
		v.Set(reflect.ValueOf(netip.MustParsePrefix("192.0.2.0/25")))
		return
	case netip.AddrPort:
		v.Set(reflect.ValueOf(netip.MustParseAddrPort("192.0.2.77:1")))
		return
	case Endpoints:
		v.Set(reflect.ValueOf(MakeEndpoints(Endpoint{Local: true})))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(77, 0)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + int64(time.Second))
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(v.Uint() + 1)
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	default:
		t.Fatalf("%s: a kind of value that this test does not know", v.Type())
	}
}

// leaves calls f for each field of a value, down to those that are not structs
// of the model; lists have no entries yet, so f may append one.
func leaves(v reflect.Value, path string, f func(path string, v reflect.Value)) {
	own := v.Type().PkgPath() == reflect.TypeFor[Model]().PkgPath() || v.Type() == reflect.TypeFor[Key]()
	switch {
	case v.Type() == reflect.TypeFor[Endpoints]():
		f(path, v)
	case v.Kind() == reflect.Struct && own:
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			leaves(v.Index(i), path+"[]", f)
		}
	case v.Kind() == reflect.Slice && v.Len() > 0:
		leaves(v.Index(0), path+"[0]", f)
		f(path, v)
	default:
		f(path, v)
	}
}

// TestEveryFieldCounts: a difference in any field of an outcome is a change. It
// fails if a field is added that the comparison does not know.
func TestEveryFieldCounts(t *testing.T) {
	full := func() *Service {
		s := &Service{Ports: make([]Port, 1)}
		for f := range NumFamilies {
			s.SourceRanges[f] = make([]netip.Prefix, 1)
			s.Ports[0].External[f] = make([]External, 1)
			s.Ports[0].Backends[f] = Backends{Cluster: MakeEndpoints(Endpoint{}), Local: MakeEndpoints(Endpoint{}), Draining: MakeEndpoints(Endpoint{})}
		}
		return s
	}
	n := 0
	count := func(string, reflect.Value) { n++ }
	leaves(reflect.ValueOf(full()).Elem(), "Service", count)
	if n < 30 {
		t.Fatalf("only %d fields", n)
	}
	for i := range n {
		a, b, at := full(), full(), 0
		if !equalService(a, b) {
			t.Fatal("two of the same differ")
		}
		leaves(reflect.ValueOf(b).Elem(), "Service", func(path string, v reflect.Value) {
			if at == i {
				change(t, v)
				if equalService(a, b) {
					t.Errorf("%s does not count", path)
				}
			}
			at++
		})
	}
	var node Node
	leaves(reflect.ValueOf(&node).Elem(), "Node", func(path string, v reflect.Value) {
		was := node
		if change(t, v); equalNode(was, node) {
			t.Errorf("%s does not count", path)
		}
	})
}
