package printable

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Index returns the offset of the first hidden character, or -1. Hidden are control characters (C0,
// DEL and C1), U+2028, U+2029, Unicode's Bidi_Control, and bytes outside UTF-8.
func Index(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return indexFrom(s, i)
		}
	}
	return -1
}

func indexFrom(s string, i int) int {
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if hidden(r, size) {
			return i
		}
		i += size
	}
	return -1
}

func hidden(r rune, size int) bool {
	switch {
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case r == utf8.RuneError:
		return size == 1
	default:
		return unicode.Is(unicode.Cc, r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Bidi_Control, r)
	}
}

// Check returns an error with the first hidden character.
func Check(s string) error {
	i := Index(s)
	if i < 0 {
		return nil
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && size == 1 {
		return fmt.Errorf("byte %#02x at offset %d is not UTF-8: remove it", s[i], i)
	}
	return fmt.Errorf("control character %U at offset %d is not allowed: remove it", r, i)
}

// Escape replaces hidden characters by \u and four hexadecimal digits, and bytes outside UTF-8 by
// \x and two. It escapes line ends and tabs too.
func Escape(s string) string { return escape(s, "") }

// Lines is Escape, but keeps line ends and tabs.
func Lines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	from := Index(s)
	if from < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:from])
	for i := from; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case !hidden(r, size) || strings.ContainsRune(keep, r):
			b.WriteString(s[i : i+size])
		case r == utf8.RuneError:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// Writer escapes text for another Writer. It is safe for concurrent use.
type Writer struct {
	w  io.Writer
	mu sync.Mutex
	// incomplete character
	tail []byte
}

// NewWriter keeps line ends and tabs.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Unwrap returns the underlying Writer.
func (w *Writer) Unwrap() io.Writer { return w.w }

// Write holds an incomplete character until the rest is written.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.tail, p...)
	whole := len(text) - unfinished(text)
	w.tail = append([]byte(nil), text[whole:]...)
	if whole == 0 {
		return len(p), nil
	}
	if _, err := io.WriteString(w.w, Lines(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes incomplete characters.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	tail := w.tail
	w.tail = nil
	_, err := io.WriteString(w.w, Lines(string(tail)))
	return err
}

func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
