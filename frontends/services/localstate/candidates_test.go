package localstate

import (
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// TestListCandidates reads the candidates of a Service in more than one part, of one that does
// not exist, and before everything is known.
func TestListCandidates(t *testing.T) {
	src := newFakeSource()
	s := New(src)
	c := connect(t, s)
	list := func(name string) (all []model.Candidate, parts int, err error) {
		stream, err := c.ListCandidates(t.Context(), &modelpb.ListCandidatesRequest{Namespace: "default", Name: name})
		for err == nil {
			var part *modelpb.ListCandidatesResponse
			if part, err = stream.Recv(); err == nil {
				parts++
			}
			for _, m := range part.GetCandidates() {
				c, err := model.CandidateFromProto(m)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return all, parts, err
	}
	if _, _, err := list("a"); status.Code(err) != codes.Unavailable {
		t.Errorf("before everything is known: %v, want Unavailable", err)
	}
	src.set(s, "a", maxEndpoints)
	got, parts, err := list("a")
	want, _ := src.Candidates(model.Key{Namespace: "default", Name: "a"})
	if err != nil || parts != 2 || !slices.Equal(got, want) {
		t.Errorf("%d candidates in %d parts, %v: want %d in 2", len(got), parts, err, len(want))
	}
	if _, _, err := list("b"); status.Code(err) != codes.NotFound {
		t.Errorf("a Service that does not exist: %v, want NotFound", err)
	}
	if _, err := model.CandidateFromProto(&modelpb.Candidate{Protocol: 6, Endpoint: &modelpb.Endpoint{Address: []byte{1}, Port: 80}}); err == nil {
		t.Error("a candidate with an address of one byte is accepted")
	}
}

func TestFindService(t *testing.T) {
	s := New(newFakeSource())
	c := connect(t, s)
	ten, other := []byte{10, 96, 0, 1}, []byte{10, 96, 0, 2}
	if _, err := c.FindService(t.Context(), &modelpb.FindServiceRequest{Address: ten, Protocol: 6, Port: 80}); status.Code(err) != codes.Unavailable {
		t.Errorf("before everything is known: %v, want Unavailable", err)
	}
	s.Changed(&model.Changes{})
	for _, tt := range []struct {
		addr           []byte
		protocol, port uint32
		want           codes.Code
	}{
		{ten, 6, 80, codes.OK},
		{nil, 6, 30080, codes.OK},
		{ten, 17, 80, codes.NotFound},
		{other, 6, 80, codes.NotFound},
		{nil, 6, 80, codes.NotFound},
		{[]byte{1}, 6, 80, codes.InvalidArgument},
		{ten, 6 + 256, 80, codes.InvalidArgument},
		{ten, 6, 80 + 65536, codes.InvalidArgument},
	} {
		got, err := c.FindService(t.Context(), &modelpb.FindServiceRequest{Address: tt.addr, Protocol: tt.protocol, Port: tt.port})
		if status.Code(err) != tt.want || err == nil && (got.GetService().GetName() != "a" || got.GetPortName() != "http") {
			t.Errorf("%v %d/%d: %v, %v; want %v", tt.addr, tt.port, tt.protocol, got, err, tt.want)
		}
	}
}
