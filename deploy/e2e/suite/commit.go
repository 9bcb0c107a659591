package suite

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// errNoCommit means that the repository lacks the history for a test.
var errNoCommit = errors.New("no such commit here")

// extract replaces a directory by the files of a commit of the repository in dir.
//
// Possible errors: errNoCommit, git's.
func extract(dir, commit, to string) error {
	if _, err := git(dir, "cat-file", "-e", commit+"^{commit}"); err != nil {
		shallow, problem := git(dir, "rev-parse", "--is-shallow-repository")
		switch {
		case problem != nil:
			return fmt.Errorf("%w: %s: the tests build an earlier version from git, and this is not a clone: %w", errNoCommit, commit, problem)
		case shallow == "true":
			return fmt.Errorf("%w: %s: the clone is shallow: run git fetch --unshallow", errNoCommit, commit)
		}
		return fmt.Errorf("%w: %s: run git fetch: %w", errNoCommit, commit, err)
	}
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return fmt.Errorf("extract commit %s: %w", commit, err)
	}
	archive := exec.Command("git", "archive", "--format=tar", commit)
	archive.Dir = dir
	unpack := exec.Command("tar", "-x", "-C", to)
	var stderr strings.Builder
	archive.Stderr, unpack.Stderr = &stderr, &stderr
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return fmt.Errorf("extract commit %s: %w", commit, err)
	}
	if err = archive.Start(); err == nil {
		err = errors.Join(unpack.Run(), archive.Wait())
	}
	if err != nil {
		return fmt.Errorf("extract commit %s: %w: %s", commit, err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
