package access

import (
	"fmt"
	"path"
	"strings"
)

// anyDepth is the component of a path's glob that stands for any number of
// components.
const anyDepth = "**"

// maxGlob is PATH_MAX: what is longer matches nothing.
const maxGlob = 4096

// checkGlob returns what is wrong with a glob.
func checkGlob(glob string) error {
	if len(glob) > maxGlob {
		return fmt.Errorf("the glob has %d bytes: at most %d are read", len(glob), maxGlob)
	}
	if _, err := path.Match(glob, ""); err != nil {
		return fmt.Errorf("malformed glob %q: close what [ opens", glob)
	}
	return nil
}

// checkPath returns what is wrong with a path, which may be a glob.
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

// matchName matches the name of a table: * goes over slashes too, which are
// nothing special there.
func matchName(glob, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// matchPath matches an absolute path, component by component. It takes time
// in proportion to the product of both lengths.
func matchPath(glob, name string) bool {
	if !strings.HasPrefix(name, "/") {
		return false
	}
	components := strings.Split(name[1:], "/")
	// reached[i] says that what has been seen of the glob matches the first i
	// components.
	reached := make([]bool, len(components)+1)
	reached[0] = true
	for g := range strings.SplitSeq(glob[1:], "/") {
		next := make([]bool, len(reached))
		for i := range reached {
			switch {
			case g == anyDepth:
				next[i] = reached[i] || i > 0 && next[i-1]
			case i > 0 && reached[i-1]:
				ok, err := path.Match(g, components[i-1])
				next[i] = err == nil && ok
			}
		}
		reached = next
	}
	return reached[len(components)]
}
