package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestWriteEvent(t *testing.T) {
	commit := &weftv1.WatchResponse{
		Time: timestamppb.New(time.Unix(0, 0)),
		Event: &weftv1.WatchResponse_Commit{Commit: &weftv1.Commit{
			Revision: 7, Fragments: []*weftv1.FragmentName{{Publisher: "services", Name: "services"}}, Flows: 2, Build: durationpb.New(1500 * time.Microsecond),
			Changes: &weftv1.Counts{ElementsAdded: 3, ElementsDeleted: 1},
		}},
	}
	for format, want := range map[string][]string{
		"table": {"commit 7", "services/services", "+3 -1 elements", "build 1.5ms", "2 flows flushed"},
		"json":  {`"revision":`, `"7"`, `"name":`, `"services"`},
		"yaml":  {"---\n", `revision: "7"`, "- name: services", "publisher: services"},
	} {
		var b strings.Builder
		if err := writeEvent(&b, format, commit); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %q in\n%s", format, w, b.String())
			}
		}
		if format == "json" && strings.Count(b.String(), "\n") != 1 {
			t.Errorf("json is not one line:\n%s", b.String())
		}
	}
}
