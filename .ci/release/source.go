package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
)

// source is a release's commit.
type source struct {
	dir     string
	commit  string
	version string // of git describe
	time    time.Time
}

// openSource returns the commit of a clean repository.
func openSource(dir string) (*source, error) {
	s, err := readSource(dir)
	if err != nil {
		return nil, err
	}
	changed, err := s.output("git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		return nil, fmt.Errorf("%s differs from its commit: commit or remove\n%s", s.dir, changed)
	}
	return s, nil
}

// readSource returns the commit of a repository.
func readSource(dir string) (*source, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &source{dir: dir}
	if s.commit, err = s.output("git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	// The default length of an abbreviated hash depends on the other commits in the clone.
	if s.version, err = s.output("git", "describe", "--tags", "--always", "--abbrev=12"); err != nil {
		return nil, err
	}
	stamp, err := s.output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("commit time %q: %w", stamp, err)
	}
	s.time = time.Unix(seconds, 0).UTC()
	return s, nil
}

// command runs in the source's directory, without the caller's settings for Go.
func (s *source) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"SOURCE_DATE_EPOCH="+strconv.FormatInt(s.time.Unix(), 10))
	return cmd
}

func (s *source) output(name string, args ...string) (string, error) {
	out, err := s.command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build compiles weft for an architecture.
func (s *source) build(arch, binary string) error {
	cmd := s.command("go", "build", "-trimpath", "-buildvcs=true", "-tags", "grpcnotrace",
		"-ldflags", "-s -w -X main.version="+s.version, "-o", binary, "./cmd/weft")
	cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+arch)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build for %s: %w", arch, err)
	}
	return nil
}

// manual writes the manual pages and returns their paths.
func (s *source) manual(dir string) ([]string, error) {
	cmd := s.command("go", "test", "-count=1", "-run", "^TestManPages$", "./cmd/weft", "-man.dir", dir)
	if out, err := cmd.Output(); err != nil {
		return nil, fmt.Errorf("manual pages: %w\n%s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err == nil && len(pages) == 0 {
		err = fmt.Errorf("manual pages: TestManPages wrote none to %s", dir)
	}
	sort.Strings(pages)
	return pages, err
}

var numbered = regexp.MustCompile(`^v[0-9]`)

// debianVersion starts with a digit and orders before each tagged version if
// there is no tag.
func (s *source) debianVersion() string {
	if numbered.MatchString(s.version) {
		return strings.ReplaceAll(strings.TrimPrefix(s.version, "v"), "-", "+")
	}
	return "0~git" + s.time.Format("20060102150405") + "." + s.version
}

func (s *source) artifact(arch, suffix string) string {
	return fmt.Sprintf("weft-%s-linux-%s%s", s.version, arch, suffix)
}
