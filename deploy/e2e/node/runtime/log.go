package runtime

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// The kubelet reads this format: time, stream, F for a full line or P for a partial one, and the text.
// Attached clients also get the bytes.
type logFile struct {
	path string

	mu       sync.Mutex
	file     *os.File
	attached map[*attachment]bool
}

type attachment struct {
	stdout, stderr io.Writer
}

func newLog(path string) (*logFile, error) {
	l := &logFile{path: path, attached: map[*attachment]bool{}}
	if path == "" {
		return l, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return l, l.reopen()
}

// reopen starts a new file if the old one was renamed.
func (l *logFile) reopen() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
	}
	l.file = file
	return nil
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// Longer lines are written in parts, in bytes.
const longest = 16 << 10

func (l *logFile) copy(stream string, from io.Reader) {
	// Attached clients do not wait for the end of a line.
	in := bufio.NewReaderSize(io.TeeReader(from, attached{l, stream}), longest)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			l.write(stream, line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (l *logFile) write(stream string, line []byte) {
	text, tag := line, "P"
	if n := len(line); line[n-1] == '\n' {
		text, tag = line[:n-1], "F"
	}
	entry := fmt.Appendf(nil, "%s %s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), stream, tag, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_, _ = l.file.Write(entry) // a full disk must not end the container
	}
}

// attached writes one stream to all attached clients. It never fails.
type attached struct {
	*logFile
	stream string
}

func (t attached) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.attached {
		to := a.stdout
		if t.stream == "stderr" {
			to = a.stderr
		}
		if to != nil {
			_, _ = to.Write(b) // a client that has gone removes itself
		}
	}
	return len(b), nil
}

func (l *logFile) attach(a *attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attached[a] = true
}

func (l *logFile) detach(a *attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.attached, a)
}
