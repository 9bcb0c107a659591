package expr

import (
	"errors"
	"strings"
	"testing"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/syntax"
)

// TestStatefulRoundTrip encodes statements that keep a state, and decodes them again.
func TestStatefulRoundTrip(t *testing.T) {
	for text, want := range map[string]string{
		"counter":                                        "",
		"counter packets 3 bytes 180":                    "",
		"limit rate 10/second":                           "",
		"limit rate 10/second burst 5 packets":           "limit rate 10/second",
		"limit rate over 7/week burst 9 packets":         "",
		"limit rate 2048 kbytes/minute":                  "limit rate 2 mbytes/minute",
		"limit rate 1025 bytes/day burst 3 kbytes":       "",
		"quota 25 mbytes":                                "",
		"quota over 25 mbytes used 1 kbytes":             "",
		"ct count 20":                                    "",
		"ct count over 20":                               "",
		"limit rate 18446744073709551610/second":         "",
		"quota over 9223372036854775807 bytes":           "",
		"limit rate 1/hour burst 4294967295 packets":     "",
		"limit rate over 10 mbytes/second burst 1 bytes": "",
	} {
		if want == "" {
			want = text
		}
		words, err := ParseStateful(text)
		if err != nil || len(words) != 1 || words[0] != want {
			t.Errorf("%s: canonical words %q, %v: want %q", text, words, err, want)
			continue
		}
		b, err := EncodeStateful(words[0])
		if err != nil {
			t.Errorf("%s: encode: %v", text, err)
			continue
		}
		if got, err := FormatStateful(b); err != nil || got != want {
			t.Errorf("%s: decodes to %q, %v: want %q", text, got, err, want)
		}
		for n := range b {
			_, _ = FormatStateful(b[:n]) // must not panic
		}
	}
}

func TestStatefulErrors(t *testing.T) {
	for text, want := range map[string]string{
		"limit rate 0/second":                            "the rate is 0",
		"limit rate 10/second burst 0 packets":           "the burst is 0",
		"limit rate 10/second burst 5 bytes":             "both be in packets",
		"limit rate 1 kbytes/second burst 5 packets":     "both be in packets",
		"limit rate 10/second burst 4294967296 packets":  "want a burst of at most 4294967295",
		"limit rate 18446744073709551615/second":         "rate and burst are too large",
		"limit rate 18446744073709551615 mbytes/second":  "rate is too large",
		"limit rate 18446744073709551615 bytes/week":     "too large for a week",
		"quota 18446744073709551615 mbytes":              "amount is too large",
		"quota 9223372036854775808 bytes":                "amount is too large",
		"quota 1 bytes used 2 bytes":                     "more is used",
		"accept":                                         "",
		"limit rate 10/fortnight":                        "",
		"counter packets 18446744073709551616 bytes 180": "",
	} {
		if _, err := ParseStateful(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	for _, text := range []string{"accept", "counter; counter", ""} {
		if _, err := EncodeStateful(text); err == nil {
			t.Errorf("%q was encoded", text)
		}
	}
	if _, err := NewStateful(&syntax.Limit{Rate: 1, Per: "fortnight"}); err == nil {
		t.Error("a limit per fortnight was accepted")
	}
	if _, err := NewStateful(&syntax.Verdict{}); err == nil {
		t.Error("a verdict keeps a state")
	}
	if _, err := StatefulStmt(&Dup{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("dup: %v, want ErrUnsupported", err)
	}
	if _, err := DecodeStateful("dup", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("dup: %v, want ErrUnsupported", err)
	}
	if _, err := StatefulStmt(Library{&google.Limit{Rate: 1, Unit: 7}}); err == nil {
		t.Error("a limit per 7 seconds was accepted")
	}
	if e, err := NewStateful(&syntax.Counter{}); err != nil || e.Any == nil {
		t.Errorf("counter: %v, %v", e, err)
	}
}
