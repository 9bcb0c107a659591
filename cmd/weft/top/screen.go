package top

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Sequences of ECMA-48 that every terminal emulator has.
const (
	openAlternate  = "\x1b[?1049h\x1b[?25l" // a screen of its own, without a cursor
	closeAlternate = "\x1b[?25h\x1b[?1049l"
	home           = "\x1b[H"
	clearLine      = "\x1b[K"
	clearBelow     = "\x1b[J"
	highlight      = "\x1b[7m"
	plain          = "\x1b[0m"
)

// screen is a terminal that is drawn again and again.
type screen struct {
	in, out *os.File
	// was is the mode of the terminal before; nil if keys are not read.
	was *unix.Termios
}

// openScreen prepares a terminal, and calls quit when the user presses q. in may be nil.
func openScreen(in, out *os.File, quit func()) *screen {
	s := &screen{in: in, out: out}
	if in != nil {
		s.readKeys(quit)
	}
	_, _ = out.WriteString(openAlternate)
	return s
}

// readKeys makes the terminal pass each key at once, without showing it. Ctrl-C stays a signal.
func (s *screen) readKeys(quit func()) {
	was, err := unix.IoctlGetTermios(int(s.in.Fd()), unix.TCGETS) //nolint:gosec // a file descriptor
	if err != nil {
		return // not a terminal
	}
	keys := *was
	keys.Lflag &^= unix.ICANON | unix.ECHO
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, &keys); err != nil { //nolint:gosec // a file descriptor
		return
	}
	s.was = was
	// It ends with the process: a read from a terminal cannot be interrupted.
	go func() {
		for key := make([]byte, 1); ; {
			if _, err := s.in.Read(key); err != nil {
				return
			}
			if key[0] == 'q' || key[0] == 'Q' {
				quit()
			}
		}
	}()
}

// close leaves the terminal as it was.
func (s *screen) close() {
	_, _ = s.out.WriteString(closeAlternate)
	if s.was != nil {
		_ = unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, s.was) //nolint:gosec // a file descriptor
	}
}

// size returns the width and height in characters, or those of old if the terminal does not
// say.
func (s *screen) size() (width, height int) {
	size, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ) //nolint:gosec // a file descriptor
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// height is that of size.
func (s *screen) height() int {
	_, height := s.size()
	return height
}

// draw replaces what is on the screen. The lines have no control characters.
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

// cut returns at most width characters of a text.
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
