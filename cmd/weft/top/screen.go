package top

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Sequences of ECMA-48, and private modes of xterm.
const (
	openAlternate  = "\x1b[?1049h\x1b[?25l" // without a cursor
	closeAlternate = "\x1b[?25h\x1b[?1049l"
	home           = "\x1b[H"
	clearLine      = "\x1b[K"
	clearBelow     = "\x1b[J"
	highlight      = "\x1b[7m"
	plain          = "\x1b[0m"

	ctrlC = 3 // a key, in raw mode
)

type screen struct {
	in, out *os.File
	// nil if keys are not read
	was *term.State
}

// openScreen calls quit for q or Ctrl-C. in may be nil.
func openScreen(in, out *os.File, quit func()) *screen {
	s := &screen{in: in, out: out}
	if in != nil {
		s.readKeys(quit)
	}
	_, _ = out.WriteString(openAlternate)
	return s
}

// readKeys reads keys at once and without an echo, Ctrl-C too.
func (s *screen) readKeys(quit func()) {
	was, err := term.MakeRaw(int(s.in.Fd())) //nolint:gosec // a file descriptor
	if err != nil {
		return // not a terminal
	}
	s.was = was
	// A read from a terminal cannot be interrupted.
	go func() {
		for key := make([]byte, 1); ; {
			if _, err := s.in.Read(key); err != nil {
				return
			}
			if key[0] == 'q' || key[0] == 'Q' || key[0] == ctrlC {
				quit()
			}
		}
	}()
}

func (s *screen) close() {
	_, _ = s.out.WriteString(closeAlternate)
	if s.was != nil {
		_ = term.Restore(int(s.in.Fd()), s.was) //nolint:gosec // a file descriptor
	}
}

// size is in characters, by default 80x24.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd())) //nolint:gosec // a file descriptor
	if err != nil || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// draw expects lines without control characters.
func (s *screen) draw(lines []line) error {
	width, height := s.size()
	var b strings.Builder
	b.WriteString(home)
	for i, l := range lines[:min(height, len(lines))] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		text := cut(l.text, width)
		rest := width - utf8.RuneCountInString(text)
		switch {
		case l.title:
			text = highlight + text + strings.Repeat(" ", rest) + plain
		case rest > 0: // after a full line, it would clear the last character
			text += clearLine
		}
		b.WriteString(text)
	}
	b.WriteString(clearBelow)
	_, err := s.out.WriteString(b.String())
	return err
}

func cut(text string, width int) string {
	n := 0
	for i := range text {
		if n == width {
			return text[:i]
		}
		n++
	}
	return text
}
