package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// script is a block of commands of a document.
type script struct {
	// document is a path in the repository, name the comment's name for the block.
	document, name string
	// lines without comments
	text []string
}

var errNoScript = errors.New("no block of code after the comment")

// readScript returns the block after the comment <!-- install: NAME --> in a document, indented or
// between fences.
func readScript(document, name string) (script, error) {
	b, err := os.ReadFile(filepath.Join(repository, document))
	if err != nil {
		return script{}, fmt.Errorf("read document: %w", err)
	}
	s := script{document: document, name: name}
	comment := fmt.Sprintf("<!-- install: %s -->", name)
	_, after, found := strings.Cut(string(b), comment+"\n")
	if !found {
		return s, fmt.Errorf("%s: %s: %w", document, comment, errNoScript)
	}
	fenced := false
	for line := range strings.Lines(after) {
		line = strings.TrimRight(line, "\n")
		command, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "```") && fenced, line != "" && !fenced && !indented && len(s.text) > 0:
			return s, s.check()
		case strings.HasPrefix(line, "```"):
			fenced = true
			continue
		case fenced:
			command = line
		case line != "" && !indented:
			return s, fmt.Errorf("%s: %s: %w, but %q", document, comment, errNoScript, line)
		}
		if command = strings.TrimSpace(command); command != "" && !strings.HasPrefix(command, "#") {
			s.text = append(s.text, command)
		}
	}
	return s, s.check()
}

func (s *script) check() error {
	if len(s.text) == 0 {
		return fmt.Errorf("%s: %s: %w", s.document, s.name, errNoScript)
	}
	return nil
}

// commands counts commands: parts joined by && are several; lines joined by a backslash, and a command
// with its here-document, are one.
func (s *script) commands() int {
	n, document := 0, ""
	for _, line := range s.text {
		switch _, begin, found := strings.Cut(line, "<<'"); {
		case document != "":
			if line == document {
				document = ""
			}
			continue
		case found:
			document, _, _ = strings.Cut(begin, "'")
		case strings.HasSuffix(line, `\`):
			continue
		}
		n += 1 + strings.Count(line, "&&")
	}
	return n
}

func (s *script) String() string { return strings.Join(s.text, "\n") }
