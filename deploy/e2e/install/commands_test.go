package install

import (
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

// readScript returns the indented block after the comment <!-- install: NAME --> in a document.
func readScript(document, name string) (script, error) {
	b, err := os.ReadFile(filepath.Join(repository, document))
	if err != nil {
		return script{}, fmt.Errorf("read document: %w", err)
	}
	s := script{document: document, name: name}
	comment := fmt.Sprintf("<!-- install: %s -->\n", name)
	_, after, _ := strings.Cut(string(b), comment)
	for line := range strings.Lines(after) {
		command, indented := strings.CutPrefix(line, "    ")
		if !indented && line != "\n" {
			break
		}
		if command = strings.TrimSpace(command); command != "" && !strings.HasPrefix(command, "#") {
			s.text = append(s.text, command)
		}
	}
	if len(s.text) == 0 {
		return s, fmt.Errorf("%s: no block of code after %s", document, comment)
	}
	return s, nil
}

// commands counts commands: parts joined by && are several; lines joined by a backslash are one.
func (s *script) commands() int {
	n := 0
	for _, line := range s.text {
		if !strings.HasSuffix(line, `\`) {
			n += 1 + strings.Count(line, "&&")
		}
	}
	return n
}

func (s *script) String() string { return strings.Join(s.text, "\n") }
