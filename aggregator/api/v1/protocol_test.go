package weftv1_test

import (
	"os"
	"regexp"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// words returns the identifiers in the code spans of PROTOCOL.md, and each part of an
// identifier with dots.
func words(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	// Blocks of code are examples, not explanations.
	text = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAll(text, nil)
	out := make(map[string]bool)
	for _, span := range regexp.MustCompile("`[^`\n]+`").FindAll(text, -1) {
		for _, word := range regexp.MustCompile(`\w+`).FindAll(span, -1) {
			out[string(word)] = true
		}
	}
	return out
}

// TestProtocolNamesCalls walks the descriptors of weft.proto: PROTOCOL.md names each call, and each reason of a
// rejection, because a client must handle it.
func TestProtocolNamesCalls(t *testing.T) {
	named := words(t)
	n := 0
	check := func(d protoreflect.Descriptor) {
		n++
		if !named[string(d.Name())] {
			t.Errorf("PROTOCOL.md does not name %s", d.FullName())
		}
	}
	services := weftv1.File_weft_proto.Services()
	for i := range services.Len() {
		check(services.Get(i))
		for j := range services.Get(i).Methods().Len() {
			check(services.Get(i).Methods().Get(j))
		}
	}
	reasons := weftv1.Violation_REASON_UNSPECIFIED.Descriptor().Values()
	for i := range reasons.Len() {
		check(reasons.Get(i))
	}
	if n < 30 {
		t.Errorf("only %d names were checked", n)
	}
}
