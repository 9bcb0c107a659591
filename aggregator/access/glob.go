package access

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const anyDepth = "**"

// PATH_MAX
const maxGlob = 4096

func checkGlob(glob string) error {
	if len(glob) > maxGlob {
		return fmt.Errorf("the glob has %d bytes: at most %d are read", len(glob), maxGlob)
	}
	if _, err := path.Match(glob, ""); err != nil {
		return fmt.Errorf("malformed glob %q: close what [ opens", glob)
	}
	return nil
}

func checkPath(glob string) error {
	if !strings.HasPrefix(glob, "/") {
		return fmt.Errorf("path %q is not absolute: begin it with /", glob)
	}
	for c := range strings.SplitSeq(glob, "/") {
		if c != anyDepth && strings.Contains(c, anyDepth) {
			return fmt.Errorf("%s in %q is only part of a component: write it between two slashes", anyDepth, glob)
		}
	}
	return checkGlob(glob)
}

// matchName lets a * match slashes too: they have no meaning in names of tables.
func matchName(glob, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// literalBraces escapes the characters special to doublestar alone.
var literalBraces = strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`)

func matchPath(glob, name string) bool {
	ok, err := doublestar.Match(literalBraces.Replace(glob), name)
	return err == nil && ok && strings.HasPrefix(name, "/")
}
