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

// TestProtocolNamesEverything walks the descriptors of weft.proto: each call,
// message, field and enum value is in PROTOCOL.md.
func TestProtocolNamesEverything(t *testing.T) {
	named := words(t)
	n := 0
	check := func(d protoreflect.Descriptor) {
		n++
		if !named[string(d.Name())] {
			t.Errorf("PROTOCOL.md does not name %s", d.FullName())
		}
	}
	file := weftv1.File_weft_proto
	services := file.Services()
	for i := range services.Len() {
		check(services.Get(i))
		for j := range services.Get(i).Methods().Len() {
			check(services.Get(i).Methods().Get(j))
		}
	}
	enums(file.Enums(), check)
	messages(file.Messages(), check)
	if n < 200 {
		t.Errorf("only %d names were checked", n)
	}
}

func enums(all protoreflect.EnumDescriptors, check func(protoreflect.Descriptor)) {
	for i := range all.Len() {
		check(all.Get(i))
		for j := range all.Get(i).Values().Len() {
			check(all.Get(i).Values().Get(j))
		}
	}
}

func messages(all protoreflect.MessageDescriptors, check func(protoreflect.Descriptor)) {
	for i := range all.Len() {
		m := all.Get(i)
		if m.IsMapEntry() {
			continue
		}
		check(m)
		for j := range m.Fields().Len() {
			check(m.Fields().Get(j))
		}
		enums(m.Enums(), check)
		messages(m.Messages(), check)
	}
}
