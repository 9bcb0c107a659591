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
	commit := &weftv1.Event{
		Time: timestamppb.New(time.Unix(0, 0)),
		Event: &weftv1.Event_Commit{Commit: &weftv1.Commit{
			Revision: 7, Fragments: []string{"services/services"}, Flows: 2, Duration: durationpb.New(1500 * time.Microsecond),
			Changes: &weftv1.Counts{ElementsAdded: 3, ElementsDeleted: 1},
		}},
	}
	for format, want := range map[string][]string{
		"table": {"commit 7", "services/services", "+3 -1 elements", "1.5ms", "2 flows flushed"},
		"json":  {`"revision":`, `"7"`, `"services/services"`},
		"yaml":  {"---\n", `revision: "7"`, "- services/services"},
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
