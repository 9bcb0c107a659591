package publish

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestExamplesOfTheProtocol runs the input that PROTOCOL.md shows, and compares
// the answers with those that it shows.
func TestExamplesOfTheProtocol(t *testing.T) {
	text, err := os.ReadFile("../../../aggregator/api/v1/PROTOCOL.md")
	must(t, err)
	blocks := regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of JSON: want the input and the output", len(blocks))
	}
	var out strings.Builder
	d := start(t, &aggregatortest.Kernel{})
	if _, err := Run(aggregatortest.Context(t), Config{Client: d.Dial(t, "demo"), In: strings.NewReader(blocks[0][1]), Out: &out}); err != nil {
		t.Fatal(err)
	}
	steady := func(s string) string { return regexp.MustCompile(`"revision":\d+`).ReplaceAllString(s, `"revision":N`) }
	if got, want := steady(out.String()), steady(blocks[1][1]); got != want {
		t.Errorf("answers:\n%s\nPROTOCOL.md has:\n%s", got, want)
	}
}
