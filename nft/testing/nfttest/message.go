package nfttest

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Message is a message to nf_tables.
type Message struct {
	// such as unix.NFT_MSG_NEWRULE
	Type  uint16
	Attrs []byte
}

// Messages returns what nft sends to the kernel for the rules, without a commit.
func (ns *NS) Messages(t testing.TB, r *Ruleset, skip map[int]bool) []Message {
	t.Helper()
	script, _ := r.Script(skip)
	text, err := ns.Output(script, "nft", "--debug=mnl", "-c", "-f", "-")
	if err != nil && (!r.Unchecked || !kernelError(err)) {
		t.Fatal(err)
	}
	return ParseMessages(text)
}

// Lines of "nft --debug=mnl".
var (
	messageType = regexp.MustCompile(`^\|\s*(\d+) \|`)
	messageRow  = regexp.MustCompile(`^\|\s*(?:([0-9a-f]{2}) ([0-9a-f]{2}) ([0-9a-f]{2}) ([0-9a-f]{2})|(\d{5})\|(.).\|(\d{5}))\s*\|`)
)

// ParseMessages returns the messages to nf_tables in the output of "nft --debug=mnl".
func ParseMessages(text string) []Message {
	var out []Message
	for _, msg := range strings.Split(withoutColours(text), "| message length |")[1:] {
		head := messageType.FindStringSubmatch(strings.SplitN(msg, "\n", 3)[1])
		_, body, ok := strings.Cut(msg, "|  extra header  |\n")
		if head == nil || !ok {
			continue
		}
		typ, _ := strconv.Atoi(head[1])
		if typ>>8 != unix.NFNL_SUBSYS_NFTABLES {
			continue
		}
		var b []byte
		for line := range strings.Lines(body) {
			m := messageRow.FindStringSubmatch(line)
			switch {
			case m == nil:
			case m[1] != "":
				data, _ := hex.DecodeString(m[1] + m[2] + m[3] + m[4])
				b = append(b, data...)
			default:
				n, _ := strconv.Atoi(m[5])
				attr, _ := strconv.Atoi(m[7])
				if m[6] == "N" {
					attr |= unix.NLA_F_NESTED
				}
				b = append(b, byte(n), byte(n>>8), byte(attr), byte(attr>>8))
			}
		}
		out = append(out, Message{uint16(typ & 0xff), b})
	}
	return out
}

// withoutColours removes the escape sequences of a terminal's colours. The text is so long that a regular expression
// takes most of a test's time.
func withoutColours(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	plain, rest, found := strings.Cut(text, "\x1b[")
	for b.WriteString(plain); found; b.WriteString(plain) {
		_, rest, _ = strings.Cut(rest, "m")
		plain, rest, found = strings.Cut(rest, "\x1b[")
	}
	return b.String()
}
