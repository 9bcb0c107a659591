package install

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReadScript reads blocks of both forms, and rejects comments without a block.
func TestReadScript(t *testing.T) {
	document := filepath.Join(t.TempDir(), "document.md")
	text := "# Title\n\n<!-- install: one -->\n    a && b  # both\n\n    # about c\n    c \\\n      d\nText.\n" +
		"<!-- install: two -->\n```sh\ne <<'END'\nx && y\nEND\nf\n```\n    not this\n<!-- install: three -->\nText.\n<!-- install: four -->\n"
	if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(repository, document)
	if err != nil {
		absolute, _ := filepath.Abs(repository)
		if relative, err = filepath.Rel(absolute, document); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]struct {
		text     string
		commands int
	}{"one": {"a && b  # both\nc \\\nd", 3}, "two": {"e <<'END'\nx && y\nEND\nf", 2}} {
		s, err := readScript(relative, name)
		if err != nil || s.String() != want.text || s.commands() != want.commands {
			t.Errorf("%s: %q, %d commands, %v; want %q, %d", name, s.String(), s.commands(), err, want.text, want.commands)
		}
	}
	for _, name := range []string{"three", "four", "five"} {
		if s, err := readScript(relative, name); !errors.Is(err, errNoScript) {
			t.Errorf("%s: %q, %v; want an error", name, s.String(), err)
		}
	}
}
