package model

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// The generators of everything that a snapshot can hold.

func drawAddr(f Family) *rapid.Generator[netip.Addr] {
	return rapid.Custom(func(t *rapid.T) netip.Addr {
		if f == IPv4 {
			return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")))
		}
		b := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		b[0] |= 0x20
		return netip.AddrFrom16(b)
	})
}

func drawAddrs(t *rapid.T) (out [NumFamilies]netip.Addr) {
	for f := range out {
		if rapid.Bool().Draw(t, "address") {
			out[f] = drawAddr(Family(f)).Draw(t, "addr")
		}
	}
	return out
}

// listOf is a list that is nil where it is empty, as the model has it.
func listOf[T any](t *rapid.T, label string, one func(*rapid.T) T) (out []T) {
	for range rapid.IntRange(0, 3).Draw(t, label) {
		out = append(out, one(t))
	}
	return out
}

func drawPrefixes(t *rapid.T) (out Prefixes) {
	for f := range out {
		out[f] = listOf(t, "prefixes", func(t *rapid.T) netip.Prefix {
			a := drawAddr(Family(f)).Draw(t, "addr")
			return netip.PrefixFrom(a, rapid.IntRange(3, a.BitLen()).Draw(t, "bits")).Masked()
		})
	}
	return out
}

func drawEndpoints(t *rapid.T, f Family) Endpoints {
	return MakeEndpoints(listOf(t, "endpoints", func(t *rapid.T) Endpoint {
		return Endpoint{
			Addr:  netip.AddrPortFrom(drawAddr(f).Draw(t, "addr"), rapid.Uint16Min(1).Draw(t, "port")),
			Local: rapid.Bool().Draw(t, "local"),
		}
	})...)
}

func drawPort(t *rapid.T) Port {
	p := Port{
		Name: rapid.StringN(0, 5, 20).Draw(t, "name"), Protocol: rapid.SampledFrom([]Protocol{TCP, UDP, SCTP}).Draw(t, "protocol"),
		Number: rapid.Uint16Min(1).Draw(t, "number"), NodePort: rapid.Uint16().Draw(t, "nodePort"), ClusterIPs: drawAddrs(t),
	}
	for f := range NumFamilies {
		p.External[f] = listOf(t, "external", func(t *rapid.T) External {
			return External{Addr: drawAddr(f).Draw(t, "addr"), LoadBalancer: rapid.Bool().Draw(t, "lb")}
		})
		p.Backends[f] = Backends{Cluster: drawEndpoints(t, f), Local: drawEndpoints(t, f), Draining: drawEndpoints(t, f)}
	}
	return p
}

func drawService(t *rapid.T) *Service {
	s := &Service{
		Name:       Key{Namespace: rapid.StringN(0, 5, 20).Draw(t, "namespace"), Name: rapid.StringN(0, 5, 20).Draw(t, "name")},
		ClusterIPs: drawAddrs(t), InternalLocal: rapid.Bool().Draw(t, "internal"), ExternalLocal: rapid.Bool().Draw(t, "external"),
		Affinity:     time.Duration(rapid.IntRange(0, 1<<31-1).Draw(t, "affinity")) * time.Second,
		SourceRanges: drawPrefixes(t), HealthCheckNodePort: rapid.Uint16().Draw(t, "health"), LocalReady: [NumFamilies]int{rapid.IntRange(0, 1<<20).Draw(t, "ready"), rapid.IntRange(0, 1<<20).Draw(t, "ready of IPv6")},
		Ports: append([]Port{}, listOf(t, "ports", drawPort)...),
	}
	if rapid.Bool().Draw(t, "dated") {
		s.Created = time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()
	}
	return s
}

func drawSnapshot(t *rapid.T) Snapshot {
	return Snapshot{
		Revision: rapid.Uint64().Draw(t, "revision"),
		Node: Node{
			Known: rapid.Bool().Draw(t, "known"), Name: rapid.StringN(0, 5, 20).Draw(t, "node"), Addresses: drawAddrs(t),
			PodCIDRs: drawPrefixes(t), Kept: rapid.Bool().Draw(t, "kept"), Zone: rapid.StringN(0, 5, 20).Draw(t, "zone"), Leaving: rapid.Bool().Draw(t, "leaving"),
		},
		ServiceCIDRs: drawPrefixes(t),
		Services:     append([]*Service{}, listOf(t, "services", drawService)...),
	}
}

// marshal encodes the snapshot as a modelpb.Model, deterministically.
func (s Snapshot) marshal() ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(s.Proto())
}

// unmarshal decodes the result of marshal.
func (s *Snapshot) unmarshal(b []byte) (err error) {
	var p modelpb.Model
	if err := proto.Unmarshal(b, &p); err != nil {
		return err
	}
	*s, err = FromProto(&p)
	return err
}

// TestSnapshotRoundTrip: whatever the model can hold comes back as it was.
func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSnapshot(t)
		b, err := want.marshal()
		if err != nil {
			t.Fatal(err)
		}
		var got Snapshot
		if err := got.unmarshal(b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("round trip gives\n%+v, want\n%+v", got, want)
		}
	})
}

// TestSnapshotHasEveryField fails if a field is added that no generator fills,
// and with it the round trip above would say nothing.
func TestSnapshotHasEveryField(t *testing.T) {
	seen := make(map[string]bool)
	rapid.Check(t, func(t *rapid.T) {
		fill(reflect.ValueOf(drawSnapshot(t)), "Snapshot", seen)
	})
	for path, set := range seen {
		if !set {
			t.Errorf("%s is never anything but zero", path)
		}
	}
}

// fill notes for each field of the model's types whether it was ever set.
func fill(v reflect.Value, path string, seen map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		fill(v.Elem(), path, seen)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), path+"[]", seen)
		}
	case reflect.Struct:
		if list, ok := v.Interface().(Endpoints); ok {
			for e := range list.All() {
				fill(reflect.ValueOf(e), path+"[]", seen)
			}
			return
		}
		if v.Type().PkgPath() != reflect.TypeFor[Snapshot]().PkgPath() {
			return
		}
		for i := range v.NumField() {
			at := path + "." + v.Type().Field(i).Name
			seen[at] = seen[at] || !v.Field(i).IsZero()
			fill(v.Field(i), at, seen)
		}
	}
}

// TestUnmarshalRefuses: what does not come from a snapshot is an error.
func TestUnmarshalRefuses(t *testing.T) {
	good := Snapshot{Services: []*Service{{Name: key("web"), Ports: []Port{{Protocol: TCP, Number: 80}}}}}
	for name, spoil := range map[string]func(*modelpb.Model){
		"protocol":    func(p *modelpb.Model) { p.Services[0].Ports[0].Protocol = 1 },
		"port":        func(p *modelpb.Model) { p.Services[0].Ports[0].Number = 65536 },
		"node port":   func(p *modelpb.Model) { p.Services[0].Ports[0].NodePort = 1 << 31 },
		"health port": func(p *modelpb.Model) { p.Services[0].HealthCheckNodePort = 65536 },
		"address":     func(p *modelpb.Model) { p.Services[0].ClusterIps = [][]byte{{1}} },
		"external":    func(p *modelpb.Model) { p.Services[0].Ports[0].External = []*modelpb.External{{}} },
		"range":       func(p *modelpb.Model) { p.ServiceCidrs = []*modelpb.Prefix{{Address: []byte{10, 0, 0, 0}, Length: 33}} },
		"range with bits": func(p *modelpb.Model) {
			p.Services[0].SourceRanges = []*modelpb.Prefix{{Address: []byte{10, 0, 0, 1}, Length: 8}}
		},
		"pod range": func(p *modelpb.Model) { p.Node.PodCidrs = []*modelpb.Prefix{{Length: 8}} },
		"other family": func(p *modelpb.Model) {
			p.Services[0].Ports[0].Ipv6 = &modelpb.Backends{Cluster: []*modelpb.Endpoint{{Address: []byte{10, 0, 0, 1}, Port: 80}}}
		},
	} {
		p := good.Proto()
		if _, err := FromProto(p); err != nil {
			t.Fatal(err)
		}
		spoil(p)
		if got, err := FromProto(p); err == nil {
			t.Errorf("%s: %+v is accepted", name, got)
		}
	}
}

// FuzzUnmarshal: whatever is accepted is a snapshot, and comes back as such.
func FuzzUnmarshal(f *testing.F) {
	for i := range 5 {
		seed, err := rapid.Custom(drawSnapshot).Example(i).marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Snapshot
		if s.unmarshal(b) != nil {
			return
		}
		again, err := s.marshal()
		if err != nil {
			t.Fatal(err)
		}
		var s2 Snapshot
		if err := s2.unmarshal(again); err != nil || !reflect.DeepEqual(s, s2) {
			t.Errorf("round trip: %v", err)
		}
	})
}
