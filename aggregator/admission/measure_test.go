package admission

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// TestEveryListIsCounted finds the lists of messages that an update can have. Each must
// be counted, or it could be as long as a request.
func TestEveryListIsCounted(t *testing.T) {
	lists := make(map[protoreflect.Name]bool)
	var walk func(m protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if f.Message() == nil {
				continue
			}
			if f.IsList() {
				lists[f.Message().Name()] = true
			}
			walk(f.Message())
		}
	}
	for _, m := range []proto.Message{&weftv1.ApplyRequest{}, &weftv1.PublishRequest{}, &weftv1.PlanRequest{}} {
		walk(m.ProtoReflect().Descriptor())
	}
	for name := range lists {
		var s Size
		s.count(name)
		s.Decoded = 0
		if s == (Size{}) {
			t.Errorf("a list of %s is not counted", name)
		}
	}
	if len(lists) < 8 {
		t.Errorf("found %d lists", len(lists))
	}
}

func TestMeasure(t *testing.T) {
	patch := &weftv1.PublishRequest{Id: 7, Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{
		Name: "t", PutChains: []*weftv1.Chain{{Name: "c", Rules: []*weftv1.Rule{{Text: "accept"}, {Text: "drop"}}}},
		PutSets:       []*weftv1.Set{{Name: "s", Elements: []*weftv1.Element{{Key: "1.1.1.1"}}, Packed: []*weftv1.PackedElements{{Count: 3, Keys: make([]byte, 12)}}}},
		PutObjects:    []*weftv1.Object{{Name: "o"}},
		DeleteObjects: []*weftv1.ObjectReference{{Name: "p"}},
		Elements:      []*weftv1.ElementPatch{{Set: "s", Add: []*weftv1.Element{{Key: "1.1.1.2"}}, Remove: []string{"1.1.1.3"}}},
		DeleteSets:    []string{"x", "y"},
	}}}}}
	b, err := proto.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	m := patch.ProtoReflect().Descriptor()
	got, err := Measure(m, b)
	want := Size{Fragments: 1, Tables: 1, Chains: 1, Sets: 1, Rules: 2, Objects: 2, Elements: 7, Changes: 1, Names: 2, Decoded: got.Decoded}
	if err != nil || got != want || got.Decoded < len(b)+10*messageSize {
		t.Errorf("size %+v, error %v: want %+v", got, err, want)
	}
	head, err := Head(m, b)
	if err != nil {
		t.Fatal(err)
	}
	var left weftv1.PublishRequest
	if err := proto.Unmarshal(head, &left); err != nil || left.GetId() != 7 || left.GetPatch().GetFragment() != "f" || len(left.GetPatch().GetTables()) != 0 {
		t.Errorf("the head is %v, error %v", &left, err)
	}
	for n := range b {
		if _, err := Measure(m, b[:n]); err == nil && proto.Unmarshal(b[:n], &left) != nil {
			t.Errorf("the first %d bytes are measured and cannot be decoded", n)
		}
	}
}

func TestSizeCheck(t *testing.T) {
	for _, tt := range []struct {
		size Size
		text string
	}{
		{Size{Tables: MaxTables}, ""},
		{Size{Tables: MaxTables + 1}, "it has 65 tables: at most 64 are allowed"},
		{Size{Fragments: 2, Tables: MaxTables + 1}, ""},
		{Size{Fragments: MaxPlan + 1}, "it has 1001 fragments"},
		{Size{Elements: MaxElements + 1}, "elements"},
		{Size{Decoded: MaxDecoded + 1}, "bytes after it is decoded: at most 268435456"},
	} {
		err := tt.size.Check(nil, nil)
		if (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%+v: error %v: want %q", tt.size, err, tt.text)
		}
	}
}

// TestSizeCheckOfAPublisher compares requests with what a publisher may hold beside what it
// holds: it may send as much again, or remove it.
func TestSizeCheckOfAPublisher(t *testing.T) {
	control := configured(t, "limits: {rules: 10, elements: 20}")
	held := func() (rules, elements int) { return 4, 5 }
	for _, tt := range []struct {
		size Size
		text string
	}{
		{Size{Rules: 10, Elements: 20}, ""},
		{Size{Rules: 9, Objects: 5, Elements: 25}, ""},
		{Size{Rules: 10, Objects: 5}, "publisher p sends a snapshot with at least 11 rules: at most 10 are allowed (limits.rules"},
		{Size{Elements: 26}, "publisher p sends a snapshot with at least 21 elements: at most 20 are allowed (limits.elements"},
		{Size{Tables: MaxTables + 1}, "it has 65 tables"},
	} {
		err := tt.size.Check(control.Publisher("p"), held)
		if (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%+v: error %v: want %q", tt.size, err, tt.text)
		}
		b := NewSnapshot(Config{}, desired.Key{Publisher: "p", Name: "f"}, nowhere{})
		if err == nil {
			continue
		}
		b.RejectSize(err)
		b.Wait()
		_, finished := b.Finish()
		var rejected *RejectedError
		refused := errors.Is(err, access.ErrExceeded)
		if !errors.As(finished, &rejected) || rejected.Violations[0].GetReason() != weftv1.Violation_REASON_LIMIT || (len(rejected.Refusals) == 1) != refused {
			t.Errorf("%+v: the update ends with %v", tt.size, finished)
		}
	}
}
